"""One benchmark at a time on a machine: a lock on a file in its temporary folder, which ends with the process that has it.

A second benchmark is refused at once, and told who measures: one that waited would look as if it hung, for up to hours.
The file is only read, so that every user of the machine can lock it, and stays where it is.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hybrid.storage.lock import fcntl

PATH = Path(tempfile.gettempdir(), "hybrid-bench.lock")
PROC = Path("/proc")


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
