"""Steps run once each, a run stops and goes on, what a machine lacks is skipped with the reason, and all of it is a record."""

import subprocess
import sys
import time

import pytest

from bench.harness import report
from bench.harness.quiet import REFUSED
from bench.report import all as runner
from bench.report.all import RESULTS, STEP, Settings, finished
from bench.report.section import NEEDS, Step
from tests.support.bench_command import wait_for_the_end_of

ONE, OTHER = Step("one", ("tree",), 9, 1, quick=("tree",)), Step("other", ("units",), 1, 3)
STEPS = [("table7", ONE), ("overlap", OTHER)]
LACKING = [
    ("ranks", Step("absent", ("ranks",), 1, 1, needs=("mpi",))),
    ("overlap", Step("large", ("tree",), 1, 1, memory=1e6)),
]
DONE = "done", ""


class Processes:
    """In the place of processes: notes what would run, and ends as `codes` has it of a benchmark."""

    def __init__(self):
        self.ran, self.codes, self.refused = [], {}, 0

    def __call__(self, command, log):
        self.ran.append(command[3])
        log.write_text("a line before\nthe reason\n\n")
        code = self.codes.get(command[3], 0)
        if isinstance(code, list):
            code = code.pop(0)
        if code == "stop":
            raise KeyboardInterrupt
        self.refused += code == REFUSED
        return code


@pytest.fixture
def processes(monkeypatch):
    made = Processes()
    monkeypatch.setattr(runner, "_process", made)
    return made


def states(folder):
    found = (one for one in report.read([str(folder / RESULTS)]) if one["work"] == STEP)
    return {one["params"]["step"]: (one["state"], one["reason"]) for one in found}


@pytest.mark.parametrize(
    ("steps", "quick", "codes", "became", "ran"),
    [
        (STEPS, False, {}, [DONE, DONE], ["tree", "units"]),
        (STEPS, False, {"tree": 1}, [("failed", "the reason"), DONE], ["tree", "units"]),
        (
            STEPS,
            False,
            {"tree": [REFUSED, REFUSED, 0], "units": REFUSED},
            [DONE, ("failed", "the reason")],
            ["tree"] * 3 + ["units"] * runner.TRIES,
        ),
        (STEPS, True, {}, [DONE, ("skipped", "")], ["tree"]),
        (LACKING, False, {}, [("skipped", "no MPI here"), ("skipped", "1e+06 GiB of memory, and the machine has")], []),
    ],
)
def test_each_step_is_done_once_or_its_gap_has_a_reason(
    tmp_path, processes, monkeypatch, steps, quick, codes, became, ran
):
    """What failed is tried again; while the machine is busy a step is, for a while."""
    given, waited = Settings(tmp_path, quick, 1), []
    monkeypatch.setitem(NEEDS, "mpi", lambda: "no MPI here")
    monkeypatch.setattr(runner.time, "sleep", waited.append)
    processes.codes |= codes
    failed = [step.command[0] for (_, step), (state, _) in zip(steps, became, strict=True) if state == "failed"]
    assert runner.run_steps(steps, given) == (not failed)
    assert processes.ran == ran and waited == [runner.WAITS] * processes.refused
    for (state, reason), wanted in zip(states(tmp_path).values(), became, strict=True):
        assert state == wanted[0] and (wanted[1] in reason if state == "skipped" else wanted[1] == reason)
    processes.codes.clear()
    assert runner.run_steps(steps, given) and processes.ran == ran + failed
    if quick:
        assert list(finished(tmp_path / RESULTS)) == ["python -m bench tree --quick"]


def test_a_run_that_is_stopped_goes_on(tmp_path, processes):
    given = Settings(tmp_path, False, 1)
    processes.codes["units"] = "stop"
    with pytest.raises(KeyboardInterrupt):
        runner.run_steps(STEPS, given)
    assert states(tmp_path)["other"][0] == "stopped"
    processes.codes.clear()
    assert runner.run_steps(STEPS, given)
    assert processes.ran == ["tree", "units", "units"]


def test_nothing_of_a_step_is_left_when_it_is_stopped(tmp_path, monkeypatch):
    """Neither the process nor what it has started, though that does not listen."""
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    child = f"{deaf}; print('up', flush=True); time.sleep(600)"
    program = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)\n"
    )
    log, wait = tmp_path / "log.txt", subprocess.Popen.wait

    def interrupted(process, timeout=None):
        if timeout is None and process.poll() is None and process.args[:1] == [sys.executable]:
            while not log.read_text():
                time.sleep(0.05)
            monkeypatch.setattr(subprocess.Popen, "wait", wait)
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner._process(["python", "-c", program], log)
    wait_for_the_end_of(int(log.read_text().split()[0]))
