"""What the system says of this machine's memory and processor."""

import contextlib
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

CGROUPS = Path("/sys/fs/cgroup")
LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # of MPICH, of Slurm's PMIx and Open MPI, of Open MPI
# Bytes that NumPy, SciPy, Numba's compiler and the stacks of some threads take, and room: of address space, of data.
LEAST = {"RLIMIT_AS": 2 << 30, "RLIMIT_DATA": 1 << 30}
LEAST_TORCH = {"RLIMIT_AS": 5 << 30, "RLIMIT_DATA": 3 << 29}  # with PyTorch beside them


def launched() -> bool:
    """Whether a launcher of MPI started this process, as one of the ranks of hybrid/mpi; asked without importing MPI."""
    return any(name in os.environ for name in LAUNCHERS)


class SingleRank:
    """The ranks of a run that is one process: what hybrid/mpi/group.py does for several."""

    rank, size = 0, 1

    def once(self, work: Callable[[], T]) -> T:
        """What rank 0's work returns."""
        return work()

    def greatest(self, *numbers: int) -> tuple[int, ...]:
        """The greatest of all ranks, of each of these numbers."""
        return numbers


def available() -> int:
    """How many threads to use by default.

    The least of: the cores of this process's affinity, its cgroup's share of processor time (cpu.max), rounded up, and what
    NUMBA_NUM_THREADS and OMP_NUM_THREADS say. Of several ranks on a machine each has its part (hybrid/mpi/world.py).
    """
    numba = sys.modules.get("numba")  # where it is imported, it has read its own variable, once
    most = numba.config.NUMBA_NUM_THREADS if numba else _limit("NUMBA_NUM_THREADS")
    return int(min(allowed(), most, _limit("OMP_NUM_THREADS")))


@contextlib.contextmanager
def kernel_threads(count: int) -> Iterator[None]:
    """Within it kernels that this thread calls take so many threads."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _limit(variable: str) -> float:
    """The number of threads that a variable of the environment allows; inf where it says none."""
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() and int(value) else math.inf


def allowed() -> int:
    """How many processors the system lets this process use at a time, at least 1."""
    return max(1, math.ceil(min(len(affinity()), quota())))


def affinity() -> list[int]:
    """The cores that this process may run on; all, where the system does not tell (macOS, Windows)."""
    known = hasattr(os, "sched_getaffinity")
    return sorted(os.sched_getaffinity(0)) if known else list(range(os.cpu_count() or 1))


def quota(root: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> float:
    """How many processors the cgroups of this process allow, inf without a limit: cpu.max (v2) or cpu.cfs_quota_us (v1)."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:  # no cgroups
        return math.inf
    least = math.inf
    for _, controllers, path in lines:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / controllers  # v2 names none
        at = top / path.lstrip("/")
        for folder in (at, *at.parents):
            least = min(least, _quota_of(folder))
            if folder == top:
                break
    return least


def _quota_of(folder: Path) -> float:
    """How many processors one cgroup may use."""
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(limit) / int(period) if int(limit) > 0 else math.inf
    except (OSError, ValueError):  # no such controller; "max"
        return math.inf


def memory() -> int | None:
    """The machine's memory in bytes; None where the system does not say (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_little_memory(needs: Mapping[str, int] = LEAST) -> None:
    """MemoryError where a limit of memory (ulimit -v, -d) is lower than what libraries need before any model.

    Below that they end the process, or try for ever, and no error comes back.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, least in needs.items():
        most, option = resource.getrlimit(getattr(resource, kind))[0], "-v" if kind == "RLIMIT_AS" else "-d"
        if most not in (resource.RLIM_INFINITY, -1) and most < least:
            raise MemoryError(
                f"ulimit {option}: found {most >> 10} KiB, expected at least {least >> 10}; ulimit {option} unlimited lifts it"
            )


def peak_memory() -> int | None:
    """The most bytes of memory that this process has held at once; None where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # macOS counts bytes, Linux kibibytes


def processor() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
