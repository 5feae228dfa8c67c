"""File locks that admit one process; the system releases them however the process ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .. import console
from . import files

LOCK = files.LOCK  # in a run's folder; contains the id of the process that uses it


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A context in which no other process works on the run in `folder`, which must exist.

    Raises ValueError, with the other process id, if one works on it already. Also if the lock is a link, which would redirect
    writes. Once the folder is gone, an OSError of the context becomes that of `keep`.
    """
    _refuse_link(folder, (folder / LOCK).is_symlink())
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        _refuse_link(folder, os.fstat(descriptor).st_nlink > 1)
        if not _try(descriptor, folder):
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "another"
            raise ValueError(f"{folder}: process {owner} works on this run; wait, stop it, or name another folder")
        with files.naming(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        place = folder.absolute()
        files.HELD[place] = descriptor  # for `keep`
        try:
            yield
        except OSError as failure:
            if _stands(place, descriptor):
                raise
            raise OSError(_replaced(folder)) from failure  # whose text, such as a full disk, misleads
        finally:
            files.HELD.pop(place, None)
    finally:
        os.close(descriptor)


def keep(folder: Path) -> None:
    """Raises OSError if `folder`, or a parent, is held by this process but has been replaced.

    Otherwise writes would go into another run, or recreate a removed one.
    """
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        descriptor = files.HELD.get(place)
        if descriptor is not None and not _stands(place, descriptor):
            raise OSError(_replaced(place))


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[bool]:
    """A context that excludes others for `folder`; yields False without locks. Raises OSError as `keep` does."""
    keep(folder)
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


def _refuse_link(folder: Path, link: bool) -> None:
    if link:
        raise ValueError(f"{folder / LOCK}: found a link to another file, expected one of its own; remove the link")


def _stands(folder: Path, descriptor: int) -> bool:
    """True if a lock still belongs to the folder, or if that is unknown."""
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
    """Takes the lock; True if it was free. Without lock support, prints a note and returns True."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        console.note(f"{folder}: cannot be locked ({error.strerror}): make sure that no second process works on it")
    return True
