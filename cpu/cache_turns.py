"""Processes take turns at the files of compiled kernels: two that begin at once may share a folder.

Numba numbers these files, and writes what a number means before the file itself, without a lock. Two processes that compile
one kernel for two dtypes at once would leave the code of one under the name of the other, and later processes would run it.
"""

import contextlib
import importlib
import os
from collections.abc import Iterator
from typing import Any

from numba.core import caching

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no folder is locked there
    fcntl = None


class InTurn(caching.IndexDataCacheFile):
    """The files of one kernel; nobody else reads or writes in their folder meanwhile."""

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for some types of arguments."""
        with _turn(self._cache_path):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        """The code for some types of arguments; None where there is none."""
        with _turn(self._cache_path):
            return super().load(key)


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
