"""The cache of compiled kernels, in a folder that only this user can write, since loading a kernel runs its code.

Processes lock the folder while they use its files. Numba numbers these files, and writes the index entry before the file,
without a lock. Two processes that concurrently compile a kernel for two dtypes could store one's code under the other's name,
and later processes would run it.
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from cpu.runtime.private import private


def kernel_cache() -> str:
    """Returns the folder of compiled kernels, created if missing: one per state of this package's sources.

    Numba checks only whether a kernel's own file has changed, not the files of inlined functions. A folder named by a hash of
    all sources keeps an upgrade or a `git pull` from running stale kernels. If it cannot be created, or others could have
    written to it, a warning names the remedy. A temporary folder replaces it, so this process compiles anew.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(numba.config.CACHE_DIR or Path(home) / "hybrid-engine" / "kernels")
    try:
        return str(private(base / digest(), "NUMBA_CACHE_DIR"))
    except OSError as error:  # also a home that is not writable
        warnings.warn(f"compiled kernels are not kept, since {error}", RuntimeWarning, stacklevel=2)
    temporary = tempfile.mkdtemp(prefix="hybrid-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def digest() -> str:
    """Returns a hash of this package's sources."""
    content = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def take() -> None:
    """Makes Numba use this cache for all kernels of the process."""
    caching.IndexDataCacheFile = InTurn


class InTurn(caching.IndexDataCacheFile):
    """The files of one kernel; their folder is locked during each access.

    A damaged file counts as missing: the kernel is compiled again, and its new files replace the old.
    """

    def save(self, key: Any, data: Any) -> None:
        """Stores the code for a signature."""
        with _turn(self._cache_path):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        """Returns the code for a signature; None if missing."""
        with _turn(self._cache_path):
            return super().load(key)

    def _load_index(self) -> Any:
        """Returns the index from signatures to files."""
        index = _undamaged(super()._load_index)
        return index if isinstance(index, dict) else {}

    def _load_data(self, name: str) -> Any:
        """Returns the content of a file; None if it is damaged."""
        return _undamaged(lambda: super(InTurn, self)._load_data(name))


def _undamaged(read: Callable[[], Any]) -> Any:
    """Returns the result of `read`; None if the file is truncated or no pickle. Raises OSError if it is unreadable."""
    try:
        return read()
    except OSError:
        raise
    except Exception:  # `pickle` raises almost any exception on damaged bytes
        return None


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
    """A context that holds an exclusive lock of this folder; without lock support it does not block."""
    os.makedirs(folder, exist_ok=True)  # another process may have emptied the cache
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
