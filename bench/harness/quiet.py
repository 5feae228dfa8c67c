"""A quiet machine: one benchmark at a time, and the use of its cores by others, from Linux's /proc.

Our time is that of this process and its descendants. Others have the remaining busy time; time stolen by the hypervisor is
reported separately. System ticks are 10 ms, so nothing shorter than ten of them is reported.

The lock is on a file in the temporary folder. A second benchmark is rejected immediately with a message that names the first:
waiting would look like a hang, for up to hours. The file is only read, so that every user can lock it, and is never deleted.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PATH = Path(tempfile.gettempdir(), "hybrid-bench.lock")


class Taken(Exception):
    """Another benchmark is running on this machine."""


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """A context that excludes other benchmarks on the machine.

    Raises Taken, which names the other process if the system reports it.
    """
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = _holder(os.fstat(descriptor).st_ino)
            raise Taken(
                f"{other} measures on this machine, and two would slow each other; wait until it is done"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Opens for reading; creates if missing. Linux forbids opening another user's file in a shared folder with O_CREAT."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _holder(inode: int) -> str:
    """Returns the process that has locked a file, with its command, as Linux reports it."""
    try:
        lines = [line.split() for line in (PROC / "locks").read_text().splitlines()]
        number = next(line[4] for line in lines if line[1] == "FLOCK" and line[5].rpartition(":")[2] == str(inode))
        command = (PROC / number / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (OSError, StopIteration):
        return "another process"
    return f"process {number} ({command[:80]})"


REFUSED = 75  # exit code if nothing was timed, for scripts to retry later
BUSY = 0.1  # share of these cores: if others take more, nothing is timed unless forced
LOOK = 1.0  # seconds of observation before that
SHORT = 0.1  # minimum seconds to report
SHOWN = 3  # maximum processes to name
WORKED, STOLEN = (0, 1, 2, 5, 6), 7  # columns of a core's line: user, nice, system, irq, softirq


class Busy(Exception):
    """Others use so much of the machine that a measurement would be distorted."""


class Process(NamedTuple):
    """Seconds of its own, and of its terminated children."""

    name: str
    parent: int
    own: float
    ended: float


class Snapshot(NamedTuple):
    """Seconds since boot: busy and stolen time of the cores; and all processes by number."""

    at: float
    cores: int
    worked: float
    stolen: float
    processes: dict[int, Process]


class Load(NamedTuple):
    """Mean cores used by other processes, and by other machines."""

    cores: int
    others: float
    stolen: float

    @property
    def busy(self) -> bool:
        """True if that is too much to time anything."""
        return self.others + self.stolen > BUSY * self.cores


def snapshot() -> Snapshot | None:
    """Returns the present snapshot; None if the system does not report it."""
    try:
        lines = [line.split() for line in (PROC / "stat").read_text().splitlines()]
    except OSError:
        return None
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    cores = [[int(column) / _ticks() for column in line[1:]] for line in lines if line[0] in names]
    worked, stolen = sum(core[column] for core in cores for column in WORKED), sum(core[STOLEN] for core in cores)
    return Snapshot(time.monotonic(), len(cores), worked, stolen, dict(_processes()))


def between(before: Snapshot | None, after: Snapshot | None) -> Load | None:
    """Returns the load between two snapshots; None if the system does not report it, or the time was too short."""
    if before is None or after is None or not after.cores or after.at - before.at < SHORT:
        return None
    seconds = after.at - before.at
    ours = _ours(after.processes) - _ours(before.processes)
    others = max(0.0, after.worked - before.worked - ours)
    return Load(after.cores, round(others / seconds, 3), round((after.stolen - before.stolen) / seconds, 3))


def check_quiet() -> None:
    """Raises Busy, with the load and its processes, if others use more than BUSY of the machine."""
    before = snapshot()
    time.sleep(LOOK)
    after = snapshot()
    found = between(before, after)
    if before and after and found and found.busy:
        raise Busy(
            f"the machine is busy: other processes take {found.others:.2f} of {found.cores} cores{_named(before, after)}, "
            f"other machines {found.stolen:.2f}, expected at most {BUSY:.0%} of the cores together; wait, stop them, or "
            "measure with --anyway, and the records say how busy it was"
        )


class Laps:
    """The load since the last lap, per record, for benchmarks with their own clock."""

    def __init__(self) -> None:
        self._last: Snapshot | None = None

    def begin(self) -> None:
        """Starts the first lap."""
        self._last = snapshot()

    def lap(self) -> Load | None:
        """Ends a lap and starts the next; None if none has started."""
        if self._last is None:
            return None
        now = snapshot()
        found, self._last = between(self._last, now), now
        return found


laps = Laps()


def _processes() -> Iterator[tuple[int, Process]]:
    for path in PROC.glob("[0-9]*/stat"):
        try:
            text = path.read_text(errors="replace")
        except OSError:  # terminated meanwhile
            continue
        head, _, tail = text.rpartition(")")  # names may have blanks and parentheses
        columns = tail.split()
        own, system, ended, ended_system = (int(column) / _ticks() for column in columns[11:15])
        name = head.partition("(")[2]
        yield int(path.parent.name), Process(name, int(columns[1]), own + system, ended + ended_system)


def _ticks() -> int:
    """Returns the ticks per second."""
    return os.sysconf("SC_CLK_TCK")


def _ours(processes: dict[int, Process]) -> float:
    """Returns the seconds of this process and its descendants."""
    return sum(processes[number].own + processes[number].ended for number in _family(processes))


def _family(processes: dict[int, Process]) -> set[int]:
    """Returns this process and its descendants."""
    found: set[int] = set()
    more = {os.getpid()} & processes.keys()
    while more:
        found |= more
        more = {number for number, process in processes.items() if process.parent in more} - found
    return found


def _named(before: Snapshot, after: Snapshot) -> str:
    """Returns the other processes that took most."""
    family, seconds = _family(after.processes), after.at - before.at
    taken = {
        number: (process.own - before.processes[number].own) / seconds
        for number, process in after.processes.items()
        if number in before.processes and number not in family
    }
    most = sorted(taken, key=lambda number: -taken[number])[:SHOWN]
    busy = [f"{after.processes[number].name} ({number}) {taken[number]:.2f}" for number in most if taken[number] > 0]
    return f" ({', '.join(busy)})" if busy else ""
