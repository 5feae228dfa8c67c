"""How many threads kernels may take, and how those threads wait for work.

Threads that spin while they wait are the fastest on a quiet machine; where another process has one of their cores, they spin
through time slices in which the thread that they wait for could run, and a step of half a millisecond takes 24. TBB's threads
give their core away soon and take over what a late thread has not begun; OpenMP's are told to spin for a short time only, which
PyTorch's, in the same process, read too. `python -m bench busy` is the table that this was chosen by.
"""

import contextlib
import ctypes
import importlib.metadata
import math
import os
import sys
from pathlib import Path

import numba

SPINS = "3000"  # some tens of microseconds
PARTS = 8
SAID = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # how a user says otherwise
TBB = {"linux": "libtbb.so.12", "win32": "tbb12.dll"}
CGROUPS = Path("/sys/fs/cgroup")


def settle() -> None:
    """Choose how threads wait, unless the user has chosen. Call it before their runtimes are loaded: they read this once."""
    if not any(name in os.environ for name in SAID):
        os.environ["GOMP_SPINCOUNT"] = SPINS
    if "NUMBA_THREADING_LAYER" not in os.environ:
        _load_tbb()


def _load_tbb() -> None:
    """Load the library of the package `tbb`: Numba would not find it, since the system's loader does not search its folder."""
    try:
        files = importlib.metadata.files("tbb") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == TBB.get(sys.platform):
            try:
                ctypes.CDLL(str(file.locate()), ctypes.RTLD_GLOBAL)
            except OSError:  # not for this machine: OpenMP it is
                return


def available() -> int:
    """How many threads to use by default: the cores that this process may use.

    The least of: the cores of its affinity, its cgroup's share of processor time (cpu.max), rounded up, and what
    NUMBA_NUM_THREADS and OMP_NUM_THREADS say.
    """
    said = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(said) if said.isdecimal() and int(said) else math.inf
    found = min(_affinity(), int(numba.config.NUMBA_NUM_THREADS), share(), limit)
    return max(1, math.ceil(found))


def _affinity() -> int:
    """How many cores this process may run on; all, where the system does not tell (macOS, Windows)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared(items: int) -> contextlib.AbstractContextManager[None]:
    """A context in which a parallel loop over so many items is cut into PARTS parts for each thread, so that other threads can
    take over what a late one has not begun. For loops whose results do not depend on the cut.
    """
    chunk = max(1, items // (PARTS * numba.get_num_threads()))
    context: contextlib.AbstractContextManager[None] = numba.parallel_chunksize(chunk)
    return context


def layer() -> str:
    """The runtime of Numba's threads, "tbb", "omp" or "workqueue": known after a parallel kernel has run."""
    from cpu import bandwidth

    bandwidth.read_modify_write(megabytes=1, repeat=1)
    return str(numba.threading_layer())


def share(root: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> float:
    """How many processors the cgroups of this process allow, inf without a limit: cpu.max (v2) or cpu.cfs_quota_us (v1)."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:  # no cgroups
        return math.inf
    found = math.inf
    for _, controllers, path in lines:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / controllers  # v2 names none
        at = top / path.lstrip("/")
        for folder in (at, *at.parents):
            found = min(found, _quota(folder))
            if folder == top:
                break
    return found


def _quota(folder: Path) -> float:
    """How many processors one cgroup may use."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError):  # no such controller; "max"
        return math.inf
