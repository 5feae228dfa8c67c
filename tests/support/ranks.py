"""Ranks of a module of the tests, with a limit on their time, and a look at the processes that they leave."""

import functools
import os
import signal
import subprocess
import time
from pathlib import Path

from hybrid.mpi import world

ROOT = Path(__file__).parents[2]
MARK = "HYBRID_TEST_RANKS"


@functools.cache
def _mpiexec() -> list[str]:
    return world.command(0, "module")


def command(module: str, *words: str, ranks: int) -> list[str]:
    """What starts a module's ranks; which MPI there is is asked once."""
    program, n, _, *python, _ = _mpiexec()
    return [program, n, str(ranks), *python, module, *words]


def started(*words: str, ranks: int, module: str) -> subprocess.Popen[str]:
    """A module's ranks; the words are its arguments."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    piped = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = command(module, *words, ranks=ranks)
    running = subprocess.Popen(started, cwd=ROOT, env=os.environ | {MARK: mark}, text=True, **piped)
    running.mark = mark  # type: ignore[attr-defined]
    return running


def ended(running: subprocess.Popen[str], limit: float = 60.0) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a launcher, once it has ended; no process of its ranks is left then."""
    try:
        out, err = running.communicate(timeout=limit)
    finally:
        left = gone(running)
    assert left == [], "processes are left"
    return running.returncode, out, err


def succeed(module: str, *words: object, ranks: int, limit: float = 300.0) -> None:
    """Run a module's ranks, which raise what does not hold, and say nothing else."""
    code, out, err = ended(started(*map(str, words), ranks=ranks, module=module), limit)
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
