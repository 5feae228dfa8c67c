"""Steps run once each, a run stops and goes on, what a machine lacks is skipped with the reason, and all of it is a record."""

import subprocess
import sys
import time

import pytest

from bench.harness import report
from bench.harness.quiet import REFUSED
from bench.report import all as runner
from bench.report.all import RESULTS, STEP, Settings, finished, modes
from bench.report.section import NEEDS, Step
from tests.support.bench_command import wait_for_the_end_of

ONE, OTHER = Step("one", ("tree",), 9, 1, quick=("tree",)), Step("other", ("units",), 1, 3)
STEPS = [("table7", ONE), ("overlap", OTHER)]


@pytest.fixture
def given(tmp_path):
    return Settings(tmp_path, False, 1)


class Processes:
    """In the place of processes: notes what would run, and ends as `codes` has it of a benchmark."""

    def __init__(self):
        self.ran, self.codes = [], {}

    def __call__(self, command, log):
        self.ran.append(command[3])
        log.write_text("a line before\nthe reason\n\n")
        code = self.codes.get(command[3], 0)
        if isinstance(code, list):
            code = code.pop(0)
        if code == "stop":
            raise KeyboardInterrupt
        return code


@pytest.fixture
def processes(monkeypatch):
    made = Processes()
    monkeypatch.setattr(runner, "_process", made)
    return made


def states(folder):
    found = (one for one in report.read([str(folder / RESULTS)]) if one["work"] == STEP)
    return {one["params"]["step"]: (one["state"], one["reason"]) for one in found}


def test_a_step_that_is_done_is_not_done_again(given, processes, capsys):
    assert runner.run_steps(STEPS, given) and runner.run_steps(STEPS, given)
    assert processes.ran == ["tree", "units"]
    assert capsys.readouterr().out.count("done before") == 2


def test_a_step_that_the_machine_is_too_busy_for_is_asked_again_for_a_while(given, processes, monkeypatch, capsys):
    waited = []
    monkeypatch.setattr(runner.time, "sleep", waited.append)
    processes.codes = {"tree": [REFUSED, REFUSED, 0], "units": REFUSED}
    assert not runner.run_steps(STEPS, given)
    assert processes.ran == ["tree"] * 3 + ["units"] * runner.TRIES
    assert states(given.folder) == {"one": ("done", ""), "other": ("failed", "the reason")}
    assert waited == [runner.WAITS] * (2 + runner.TRIES)
    assert "    the reason; asks again in 30 s\n" in capsys.readouterr().out


def test_a_step_that_failed_is_a_gap_and_is_tried_again(given, processes):
    processes.codes["tree"] = 1
    assert not runner.run_steps(STEPS, given)
    assert states(given.folder) == {"one": ("failed", "the reason"), "other": ("done", "")}
    processes.codes.clear()
    assert runner.run_steps(STEPS, given)
    assert processes.ran == ["tree", "units", "tree"] and states(given.folder)["one"] == ("done", "")


def test_a_run_that_is_stopped_goes_on(given, processes):
    processes.codes["units"] = "stop"
    with pytest.raises(KeyboardInterrupt):
        runner.run_steps(STEPS, given)
    assert states(given.folder)["other"][0] == "stopped"
    processes.codes.clear()
    assert runner.run_steps(STEPS, given)
    assert processes.ran == ["tree", "units", "units"]


def test_what_a_machine_lacks_is_skipped_with_the_reason(given, processes, monkeypatch):
    monkeypatch.setitem(NEEDS, "mpi", lambda: "no MPI here")
    absent = Step("absent", ("ranks",), 1, 1, needs=("mpi",))
    large = Step("large", ("tree",), 1, 1, memory=1e6)
    assert runner.run_steps([("overlap", one) for one in (absent, large)], given)
    found = states(given.folder)
    assert found["absent"] == ("skipped", "no MPI here") and not processes.ran
    assert "1e+06 GiB of memory, and the machine has" in found["large"][1]


def test_quick_mode_leaves_out_what_has_no_small_size(tmp_path, processes):
    assert runner.run_steps(STEPS, Settings(tmp_path, True, 1))
    assert processes.ran == ["tree"] and states(tmp_path)["other"][0] == "skipped"
    assert modes(tmp_path / RESULTS) == {True} and modes(tmp_path / "none") == set()
    assert list(finished(tmp_path / RESULTS)) == ["python -m bench tree --quick"]


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
