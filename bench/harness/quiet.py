"""A quiet machine: one benchmark at a time, and what others take of its cores meanwhile, as Linux says in /proc.

Ours is the time of this process and of all that it has started; others have the rest of what the cores worked, and what the
hypervisor gave to other machines is told apart. Ticks of the system are 10 ms, so nothing is said of less than ten of them.

The lock is on a file in the temporary folder. A second benchmark is refused at once, and told who measures: one that waited
would look as if it hung, for up to hours. The file is only read, so that every user of the machine can lock it, and stays.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hybrid.storage.lock import fcntl

PROC = Path("/proc")
PATH = Path(tempfile.gettempdir(), "hybrid-bench.lock")


class Taken(Exception):
    """Another benchmark is under way on this machine."""


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """A context in which this is the only benchmark on the machine; without locks (Windows) it only says so.

    Raises Taken, which names the other process where the system tells.
    """
    if fcntl is None:
        print("benchmarks cannot lock this system: let no second one run beside this one", flush=True)
        yield
        return
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
    """To read; made where it is not there. Linux lets nobody open another user's file in a shared folder as if to make it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _holder(inode: int) -> str:
    """The process that has locked a file, with its command, as Linux tells."""
    try:
        lines = [line.split() for line in (PROC / "locks").read_text().splitlines()]
        number = next(line[4] for line in lines if line[1] == "FLOCK" and line[5].rpartition(":")[2] == str(inode))
        command = (PROC / number / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (OSError, StopIteration):
        return "another process"
    return f"process {number} ({command[:80]})"


REFUSED = 75  # the exit code where nothing was timed, by which scripts know that it may go another time
BUSY = 0.1  # of these cores: where others take more, nothing is timed unless it is asked for
LOOK = 1.0  # seconds that are looked at before that
SHORT = 0.1  # seconds of which nothing is said
SHOWN = 3  # processes that are named
WORKED, STOLEN = (0, 1, 2, 5, 6), 7  # columns of a core's line: user, nice, system, irq, softirq


class Busy(Exception):
    """Others take so much of the machine that a measurement would be of them too."""


class Process(NamedTuple):
    """Seconds of its own, and of its children that have ended."""

    name: str
    parent: int
    own: float
    ended: float


class Snapshot(NamedTuple):
    """Seconds since the system began: what cores worked, what was stolen from them; and all processes by number."""

    at: float
    cores: int
    worked: float
    stolen: float
    processes: dict[int, Process]


class Load(NamedTuple):
    """Means over a while, in cores: what other processes took, and what other machines did."""

    cores: int
    others: float
    stolen: float

    @property
    def busy(self) -> bool:
        """Whether that is too much to time anything."""
        return self.others + self.stolen > BUSY * self.cores


def snapshot() -> Snapshot | None:
    """Now; None where the system does not say."""
    try:
        lines = [line.split() for line in (PROC / "stat").read_text().splitlines()]
    except OSError:
        return None
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    cores = [[int(column) / _ticks() for column in line[1:]] for line in lines if line[0] in names]
    worked, stolen = sum(core[column] for core in cores for column in WORKED), sum(core[STOLEN] for core in cores)
    return Snapshot(time.monotonic(), len(cores), worked, stolen, dict(_processes()))


def between(before: Snapshot | None, after: Snapshot | None) -> Load | None:
    """What was taken between two snapshots; None where the system does not say, or too little time went by."""
    if before is None or after is None or not after.cores or after.at - before.at < SHORT:
        return None
    seconds = after.at - before.at
    ours = _ours(after.processes) - _ours(before.processes)
    others = max(0.0, after.worked - before.worked - ours)
    return Load(after.cores, round(others / seconds, 3), round((after.stolen - before.stolen) / seconds, 3))


def check_quiet() -> None:
    """Raise Busy, which says how busy the machine is and by whom, where others take more than BUSY of it now."""
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
    """The load since the last lap: of benchmarks that keep their own clock, a record at a time."""

    def __init__(self) -> None:
        self._last: Snapshot | None = None

    def begin(self) -> None:
        """The first lap begins."""
        self._last = snapshot()

    def lap(self) -> Load | None:
        """End a lap and begin the next; None where none has begun."""
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
        except OSError:  # it has ended meanwhile
            continue
        head, _, tail = text.rpartition(")")  # names may have blanks and brackets
        columns = tail.split()
        own, system, ended, ended_system = (int(column) / _ticks() for column in columns[11:15])
        name = head.partition("(")[2]
        yield int(path.parent.name), Process(name, int(columns[1]), own + system, ended + ended_system)


def _ticks() -> int:
    """Of a second."""
    return os.sysconf("SC_CLK_TCK")


def _ours(processes: dict[int, Process]) -> float:
    """Seconds of this process and of all that it has started."""
    return sum(processes[number].own + processes[number].ended for number in _family(processes))


def _family(processes: dict[int, Process]) -> set[int]:
    """This process, its children, and theirs."""
    found: set[int] = set()
    more = {os.getpid()} & processes.keys()
    while more:
        found |= more
        more = {number for number, process in processes.items() if process.parent in more} - found
    return found


def _named(before: Snapshot, after: Snapshot) -> str:
    """The other processes that took most."""
    family, seconds = _family(after.processes), after.at - before.at
    taken = {
        number: (process.own - before.processes[number].own) / seconds
        for number, process in after.processes.items()
        if number in before.processes and number not in family
    }
    most = sorted(taken, key=lambda number: -taken[number])[:SHOWN]
    told = [f"{after.processes[number].name} ({number}) {taken[number]:.2f}" for number in most if taken[number] > 0]
    return f" ({', '.join(told)})" if told else ""
