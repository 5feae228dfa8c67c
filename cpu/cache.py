"""Where compiled kernels are kept: in a folder that only this user can write, since loading one runs the code in it."""

import atexit
import hashlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import numba

from cpu.private import private


def kernel_cache() -> str:
    """The folder of compiled kernels, made if need be: one for every state of this package's sources.

    Numba asks only whether a kernel's own file has changed, not the files of the functions that it inlines; a folder named
    by all of them keeps an upgrade or a `git pull` from running old arithmetic. Where it cannot be made, or others could
    have written to it, a warning says so, with the remedy, and a temporary one takes its place: this process compiles anew.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(numba.config.CACHE_DIR or Path(home) / "hybrid-engine" / "kernels")
    try:
        return str(private(base / _digest(), "NUMBA_CACHE_DIR"))
    except OSError as error:  # a home that cannot be written, too
        warnings.warn(f"compiled kernels are not kept, since {error}", RuntimeWarning, stacklevel=2)
    temporary = tempfile.mkdtemp(prefix="hybrid-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
