"""What others take of a machine, worked by hand from a made /proc; and one benchmark at a time."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bench.harness import quiet
from bench.harness.quiet import Load

US, CHILD, OTHER, SECOND = 10, 11, 20, 21


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A /proc with two cores of ours and one that is not; `tick(...)` lets time go by."""
    cores = {name: [100] * 10 for name in ("cpu0", "cpu1", "cpu2")}
    seconds = {number: [5, 6, 7, 8] for number in (US, CHILD, OTHER, SECOND)}
    parents, now = {US: 1, CHILD: US, OTHER: 1, SECOND: OTHER}, [50.0]

    def write():
        lines = [f"{name} {' '.join(map(str, columns))}" for name, columns in {"cpu": [0] * 10, **cores}.items()]
        (tmp_path / "stat").write_text("\n".join([*lines, "intr 5 0"]))
        for number, (user, system, ended, ended_system) in seconds.items():
            (tmp_path / str(number)).mkdir(exist_ok=True)
            columns = ["R", parents[number], *[0] * 9, user, system, ended, ended_system, 0]
            (tmp_path / str(number) / "stat").write_text(f"{number} (a (b) c{number}) {' '.join(map(str, columns))}\n")

    def tick(elapsed, core=(), **taken):
        now[0] += elapsed
        for name, column, count in core:
            cores[name][column] += count
        for number, column, count in taken.get("processes", ()):
            seconds[number][column] += count
        write()

    monkeypatch.setattr(quiet, "PROC", tmp_path)
    monkeypatch.setattr(quiet, "_ticks", lambda: 100)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "getpid", lambda: US)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    write()
    return SimpleNamespace(tick=tick, folder=tmp_path)


def test_what_cores_worked_and_is_not_ours_is_that_of_others(machine):
    laps = quiet.Laps()
    assert laps.lap() is None, "none has begun"
    laps.begin()
    core = [("cpu0", 0, 150), ("cpu0", 2, 20), ("cpu1", 1, 10), ("cpu1", 5, 5), ("cpu1", 6, 15)]  # 2 seconds of work
    # Idle, waiting, stolen, another's core
    core += [("cpu0", 3, 500), ("cpu1", 4, 500), ("cpu1", 7, 30), ("cpu2", 0, 900)]
    machine.tick(4.0, core, processes=[(US, 0, 50), (US, 1, 10), (US, 2, 20), (CHILD, 0, 40), (OTHER, 0, 80)])
    assert laps.lap() == Load(2, others=(2.0 - 1.2) / 4, stolen=0.3 / 4)
    machine.tick(1.0, [("cpu0", 0, 10)])  # from where the last lap ended
    assert laps.lap() == Load(2, 0.1, 0.0)


def test_a_busy_machine_is_refused_and_those_who_are_busy_are_named(machine, monkeypatch):
    taken = [(OTHER, 0, 30), (SECOND, 1, 50), (US, 0, 40)]
    core = [("cpu0", 0, 120), ("cpu1", 7, 10)]
    monkeypatch.setattr(time, "sleep", lambda _: machine.tick(1.0, core, processes=taken))
    with pytest.raises(quiet.Busy) as refused:
        quiet.check_quiet()
    assert "take 0.80 of 2 cores (a (b) c21 (21) 0.50, a (b) c20 (20) 0.30), other machines 0.10" in str(refused.value)
    assert "expected at most 10% of the cores" in str(refused.value) and "--anyway" in str(refused.value)


HOLD = """
import sys
from pathlib import Path
from bench.harness import quiet
with quiet.alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_one_is_refused_and_told_who_measures_until_that_ends(tmp_path):
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        said = rf"(?s)process {holder.pid} \({sys.executable}.*wait until it is done"
        with pytest.raises(quiet.Taken, match=said), quiet.alone(path):
            pass
        holder.kill()
    for _ in range(2):  # it is given back, and its file stays
        with quiet.alone(path):
            assert path.exists()
