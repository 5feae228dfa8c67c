"""Arithmetic with Numba, and all that branches. Arrays come in, never objects of `hybrid`."""

import hashlib
import os
from pathlib import Path

import numba

from cpu import threads

# Before the first parallel kernel, and before PyTorch, if that comes later.
threads.settle()

# Dense and sparse queues enter parallel kernels from two threads at once, which aborts Numba's fallback layer "workqueue":
# insist on a thread-safe one, tbb, or omp where there is none, unless the user named a layer.
if numba.config.THREADING_LAYER == "default":
    numba.config.THREADING_LAYER = "threadsafe"


def kernel_cache() -> str:
    """The folder of compiled kernels: one for every state of this package's sources.

    Numba asks only whether a kernel's own file has changed, not the files of the functions that it inlines; a folder named
    by all of them keeps an upgrade or a `git pull` from running old arithmetic.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(numba.config.CACHE_DIR or Path(home) / "hybrid-engine" / "kernels")
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return str(base / digest.hexdigest()[:16])


numba.config.CACHE_DIR = kernel_cache()
