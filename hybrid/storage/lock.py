"""One process at a time: locks on files, which end with the process that holds them, however it ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .. import console

LOCK = ".hybrid.lock"  # in the folder of a run; holds the number of the process that works there


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Work on the run in `folder`, which exists, as the only process.

    Raises ValueError, naming the process, where another one works on it.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        if not _try(descriptor, folder):
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "another"
            raise ValueError(
                f"{folder}: process {owner} works on this run; wait until it is done, stop it, or name another folder"
            )
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[bool]:
    """Wait until nobody else writes to `folder`, and keep others waiting; false where the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _try(descriptor: int, folder: Path) -> bool:
    """Take the lock, or not where another process has it; where there are no locks, say so and go on without."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        console.note(f"{folder}: cannot be locked ({error.strerror}): let no second process work on it")
    return True
