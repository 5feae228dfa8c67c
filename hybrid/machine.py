"""Memory and processors of this machine as the system reports them."""

import contextlib
import math
import os
import platform
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

CGROUPS = Path("/sys/fs/cgroup")
LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # MPICH, Slurm's PMIx and Open MPI, Open MPI
# Bytes for NumPy, SciPy, Numba's compiler and several thread stacks, with a margin: of address space, of data.
LEAST = {"RLIMIT_AS": 2 << 30, "RLIMIT_DATA": 1 << 30}
LEAST_TORCH = {"RLIMIT_AS": 5 << 30, "RLIMIT_DATA": 3 << 29}  # with PyTorch


def launched() -> bool:
    """True if an MPI launcher started this process as a rank of hybrid/mpi; does not import MPI."""
    return any(name in os.environ for name in LAUNCHERS)


class SingleRank:
    """The rank group of a single-process run, with the interface of hybrid/mpi/group.py."""

    rank, size = 0, 1

    def once(self, work: Callable[[], T]) -> T:
        return work()

    def together(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def greatest(self, *numbers: int) -> tuple[int, ...]:
        return numbers


def available() -> int:
    """Returns the default number of threads.

    It is the minimum of the cores of this process's affinity, its cgroup quota (cpu.max) rounded up, NUMBA_NUM_THREADS and
    OMP_NUM_THREADS. Ranks on one machine divide it (hybrid/mpi/world.py).
    """
    numba = sys.modules.get("numba")  # once imported, Numba has fixed its value
    most = numba.config.NUMBA_NUM_THREADS if numba else _limit("NUMBA_NUM_THREADS")
    return int(min(allowed(), most, _limit("OMP_NUM_THREADS")))


@contextlib.contextmanager
def kernel_threads(count: int) -> Iterator[None]:
    """A context in which kernels called by this thread use at most `count` threads."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _limit(variable: str) -> float:
    """Returns the thread limit in an environment variable; inf if there is none."""
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() and int(value) else math.inf


def allowed() -> int:
    """Returns the number of processors available to this process, at least 1."""
    return max(1, math.ceil(min(len(affinity()), quota())))


def affinity() -> list[int]:
    """Returns the cores of this process's affinity; all cores where unsupported (macOS)."""
    known = hasattr(os, "sched_getaffinity")
    return sorted(os.sched_getaffinity(0)) if known else list(range(os.cpu_count() or 1))


def quota(root: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> float:
    """Returns the processors that this process's cgroups allow, inf if unlimited: cpu.max (v2) or cpu.cfs_quota_us (v1)."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:  # no cgroups
        return math.inf
    least = math.inf
    for _, controllers, path in lines:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / controllers  # v2 lists none
        at = top / path.lstrip("/")
        for folder in (at, *at.parents):
            least = min(least, _quota_of(folder))
            if folder == top:
                break
    return least


def _quota_of(folder: Path) -> float:
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(limit) / int(period) if int(limit) > 0 else math.inf
    except (OSError, ValueError):  # no such controller; "max"
        return math.inf


def memory() -> int:
    """Returns the machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_little_memory(needs: Mapping[str, int] = LEAST) -> None:
    """Raises MemoryError if ulimit -v or -d is below the libraries' own need, where they abort or hang without an error."""
    for kind, least in needs.items():
        most, option = resource.getrlimit(getattr(resource, kind))[0], "-v" if kind == "RLIMIT_AS" else "-d"
        if most not in (resource.RLIM_INFINITY, -1) and most < least:
            raise MemoryError(
                f"ulimit {option}: found {most >> 10} KiB, expected at least {least >> 10}; ulimit {option} unlimited lifts it"
            )


def peak_memory() -> int:
    """Returns the peak resident memory of this process in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS reports bytes, Linux kibibytes


def processor() -> str:
    """Returns the processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
