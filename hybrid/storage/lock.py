"""One process at a time: locks on files, which the system releases when the process ends, however it ends."""

import contextlib
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import console
from . import atomic

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no folder is locked there
    fcntl = None

LOCK = ".hybrid.lock"  # in the folder of a run; contains the number of the process that works there


@contextlib.contextmanager
def held(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """A context in which this is the only process that works on the run in `folder`, which exists.

    wait  seconds in which another process may leave it, one that is being ended

    Raises ValueError, naming the other process, where one works on it already.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | _flags("O_CLOEXEC", "O_NOFOLLOW"), 0o666)
    end = time.monotonic() + wait
    try:
        while not _try(descriptor, folder):
            if time.monotonic() < end:
                time.sleep(0.01)
                continue
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "another"
            raise ValueError(
                f"{folder}: process {owner} works on this run; wait until it is done, stop it, or name another folder"
            )
        with atomic.naming(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[bool]:
    """A context that begins once nobody else is in one for `folder`; its value is False where the file system has no locks."""
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
