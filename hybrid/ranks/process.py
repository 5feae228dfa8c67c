"""A rank is a process with a keeper, its parent, which says how it ended: no mpiexec says reliably who died first."""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable

from .world import VARIABLES

# Launchers send these to keeper and rank alike; not every system has the last.
PASSED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PR_SET_PDEATHSIG = 1


def keep(work: Callable[[], int]) -> None:
    """Do the work of a rank in a child of this process; does not return.

    This process waits, says on stderr if a signal ended the child, and ends in the same way; then the launcher ends the others.
    A signal that came to this process too was the launcher's, which is not said. SIGUSR1 and SIGUSR2, which the child ignores,
    become its SIGINT and SIGTERM. Call it before MPI is initialised and before there are threads, since it forks.
    """
    keeper = os.getpid()
    meant = {signal.SIGUSR1: signal.SIGINT, signal.SIGUSR2: signal.SIGTERM}  # Open MPI hands these on, and those not
    for number in meant:
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        die_with_parent()
        if os.getppid() == keeper:  # else it is gone already
            sys.exit(work())
        os._exit(1)
    ours: list[int] = []
    for number in PASSED:
        signal.signal(number, lambda number, frame: ours.append(number))
    for number in meant:
        signal.signal(number, lambda number, frame: os.kill(child, meant[signal.Signals(number)]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        if -code not in ours:
            os.write(2, f"rank {_rank()} on {platform.node()} was killed (signal {-code})\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(code)


def die_with_parent() -> None:
    """Let the system kill this process when its parent ends (Linux alone can)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _rank() -> str:
    return next(os.environ[name] for name in VARIABLES if name in os.environ)
