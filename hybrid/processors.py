"""Which processors this process may use, by its affinity and its cgroups, and how they lie on the machine's nodes of memory.

Numba reads once how many threads it may start; nothing but `kernel_threads` imports it.
"""

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
SYSTEM = Path("/sys/devices/system")


def available() -> int:
    """How many threads to use by default.

    The least of: the cores of this process's affinity, its cgroup's share of processor time (cpu.max), rounded up, and what
    NUMBA_NUM_THREADS and OMP_NUM_THREADS say. Of several ranks on a machine each has its part (hybrid/ranks/world.py).
    """
    numba = sys.modules.get("numba")  # where it is imported, it has read its own variable
    most = numba.config.NUMBA_NUM_THREADS if numba else _said("NUMBA_NUM_THREADS")
    return int(min(allowed(), most, _said("OMP_NUM_THREADS")))


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


def _said(variable: str) -> float:
    """The number of threads that a variable of the environment allows; inf where it says none."""
    said = os.environ.get(variable, "")
    return int(said) if said.isdecimal() and int(said) else math.inf


def allowed() -> int:
    """How many processors the system lets this process use at a time, at least 1."""
    return max(1, math.ceil(min(len(affinity()), quota())))


def affinity() -> list[int]:
    """The cores that this process may run on; all, where the system does not tell (macOS, Windows)."""
    told = hasattr(os, "sched_getaffinity")
    return sorted(os.sched_getaffinity(0)) if told else list(range(os.cpu_count() or 1))


def keep_to(cores: list[int]) -> None:
    """Let this thread, and those that it starts, run on these cores alone.

    Raises ValueError where the system gives threads no cores of their own (macOS, Windows).
    """
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError(f"pin: not offered on {sys.platform}, which gives threads no cores of their own; leave it out")
    os.sched_setaffinity(0, cores)


def by_node(root: Path = SYSTEM) -> list[list[int]]:
    """The cores of this process's affinity, a list for each node of memory that has some of them.

    Those that are one core's hardware threads lie side by side, so that a part of a list is of few cores.
    """
    left = set(affinity())
    nodes = []
    folders = sorted((root / "node").glob("node[0-9]*"), key=lambda folder: int(folder.name[len("node") :]))
    for found in [_listed(folder / "cpulist") for folder in folders]:
        nodes.append(found & left)
        left -= found
    nodes.append(left)  # of machines that tell of no nodes
    return [sorted(node, key=lambda core: (_first_of(root, core), core)) for node in nodes if node]


def part(nodes: list[list[int]], place: int, parts: int) -> list[list[int]]:
    """One of several even parts of the cores, in order, so that few parts have cores of two nodes.

    Where there are more parts than cores, several parts are the same core.
    """
    every = [core for node in nodes for core in node]
    begin = place * len(every) // parts
    mine = set(every[begin : max((place + 1) * len(every) // parts, begin + 1)])
    kept = [[core for core in node if core in mine] for node in nodes]
    return [node for node in kept if node]


def _first_of(root: Path, core: int) -> int:
    """The first hardware thread of a thread's core."""
    return min(_listed(root / "cpu" / f"cpu{core}" / "topology" / "thread_siblings_list"), default=core)


def _listed(file: Path) -> set[int]:
    """The numbers of a list such as 0-3,8; none where there is no such file."""
    try:
        ranges = [piece.split("-") for piece in file.read_text().strip().split(",") if piece]
        return {number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)}
    except (OSError, ValueError):
        return set()


def quota(root: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> float:
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
            found = min(found, _quota_of(folder))
            if folder == top:
                break
    return found


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
