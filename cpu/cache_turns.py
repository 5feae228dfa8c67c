"""Processes take turns at the files of compiled kernels: two that begin at once may share a folder.

Numba numbers these files, and writes what a number means before the file itself, without a lock. Two processes that compile
one kernel for two dtypes at once would leave the code of one under the name of the other, and later processes would run it.
"""

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from numba.core import caching

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no folder is locked there
    fcntl = None


class InTurn(caching.IndexDataCacheFile):
    """The files of one kernel; nobody else reads or writes in their folder meanwhile.

    Damaged files are as none: the kernel is compiled again, and its new files take their places.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for some types of arguments."""
        with _turn(self._cache_path):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        """The code for some types of arguments; None where there is none."""
        with _turn(self._cache_path):
            return super().load(key)

    def _load_index(self) -> Any:
        """Which file has the code for which types."""
        found = _undamaged(super()._load_index)
        return found if isinstance(found, dict) else {}

    def _load_data(self, name: str) -> Any:
        """What a file has; None where it is damaged."""
        return _undamaged(lambda: super(InTurn, self)._load_data(name))


def _undamaged(read: Callable[[], Any]) -> Any:
    """What is read of a file; None where it is cut short, or no pickle at all. Raises OSError where it cannot be read."""
    try:
        return read()
    except OSError:
        raise
    except Exception:  # of damaged bytes `pickle` raises almost any
        return None


def take() -> None:
    """From now on Numba keeps the kernels of this process so."""
    caching.IndexDataCacheFile = InTurn


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
    """A context that begins once nobody else is in one for this folder; where there are no locks, at once."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
