"""One process at a time: locks on files, which the system releases when the process ends, however it ends."""

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import console
from . import files

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no folder is locked there
    fcntl = None

LOCK = files.LOCK  # in the folder of a run; contains the number of the process that works there


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A context in which this is the only process that works on the run in `folder`, which exists.

    Raises ValueError, naming the other process, where one works on it already, and where the lock is a link: whoever made it
    would have another file written to. Once the folder is no longer there, an OSError of the context becomes that of `keep`.
    """
    _refuse_link(folder, (folder / LOCK).is_symlink())
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | _flags("O_CLOEXEC", "O_NOFOLLOW"), 0o666)
    try:
        _refuse_link(folder, os.fstat(descriptor).st_nlink > 1)
        if not _try(descriptor, folder):
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "another"
            raise ValueError(
                f"{folder}: process {owner} works on this run; wait until it is done, stop it, or name another folder"
            )
        with files.naming(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        place = folder.absolute()
        files.HELD[place] = descriptor  # so that `keep` knows it
        try:
            yield
        except OSError as failure:
            if _stands(place, descriptor):
                raise
            raise OSError(_replaced(folder)) from failure  # whatever the failure says, of the room on the disk say
        finally:
            files.HELD.pop(place, None)
    finally:
        os.close(descriptor)


def keep(folder: Path) -> None:
    """OSError where this process holds `folder`, or one that it lies in, and another one has come to stand in its place.

    Then what it writes there would come into the run of somebody else, or make anew what somebody has removed.
    """
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        descriptor = files.HELD.get(place)
        if descriptor is not None and not _stands(place, descriptor):
            raise OSError(_replaced(place))


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[bool]:
    """A context that begins once nobody else is in one for `folder`; its value is False where the file system has no locks.

    Raises OSError as `keep` does.
    """
    keep(folder)
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY | _flags("O_DIRECTORY", "O_CLOEXEC"))
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _refuse_link(folder: Path, link: bool) -> None:
    if link:
        raise ValueError(f"{folder / LOCK}: found a link to another file, expected one of its own; remove the link")


def _stands(folder: Path, descriptor: int) -> bool:
    """Whether a lock is still that of the folder; True where the system does not say."""
    if fcntl is None:  # there no file is removed that somebody has open
        return True
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(folder / LOCK))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _replaced(folder: Path) -> str:
    return (
        f"{folder}: the run there was removed, or replaced by another, while this process worked on it; nothing more is "
        "saved; begin it again, with an --out of its own"
    )


def _try(descriptor: int, folder: Path) -> bool:
    """Whether the lock was free, and is taken now; where the file system has no locks, True, and a note says so."""
    if fcntl is None:
        console.note(f"{folder}: cannot be locked on this system: let no second process work on it")
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        console.note(f"{folder}: cannot be locked ({error.strerror}): let no second process work on it")
    return True


def _flags(*names: str) -> int:
    """Those flags of os.open that the system has."""
    return sum(getattr(os, name, 0) for name in names)
