"""Where compiled kernels are kept: in a folder that only this user can write, since loading one runs the code in it.

Processes take turns at the files in it. Numba numbers these files, and writes what a number means before the file itself,
without a lock. Two processes that compile one kernel for two dtypes at once would leave the code of one under the name of the
other, and later processes would run it.
"""

import atexit
import contextlib
import hashlib
import importlib
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

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows: no folder is locked there
    fcntl = None


def kernel_cache() -> str:
    """The folder of compiled kernels, made if need be: one for every state of this package's sources.

    Numba asks only whether a kernel's own file has changed, not the files of the functions that it inlines; a folder named
    by all of them keeps an upgrade or a `git pull` from running old arithmetic. Where it cannot be made, or others could
    have written to it, a warning says so, with the remedy, and a temporary one takes its place: this process compiles anew.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(numba.config.CACHE_DIR or Path(home) / "hybrid-engine" / "kernels")
    try:
        return str(private(base / digest(), "NUMBA_CACHE_DIR"))
    except OSError as error:  # a home that cannot be written, too
        warnings.warn(f"compiled kernels are not kept, since {error}", RuntimeWarning, stacklevel=2)
    temporary = tempfile.mkdtemp(prefix="hybrid-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def digest() -> str:
    """What names a state of this package's sources."""
    content = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def take() -> None:
    """From now on Numba keeps the kernels of this process so."""
    caching.IndexDataCacheFile = InTurn


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
        index = _undamaged(super()._load_index)
        return index if isinstance(index, dict) else {}

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
