"""Arithmetic with Numba; trees, search and sampling too. Functions take arrays, never objects of `hybrid`."""

import numba

from cpu.runtime import cache, machine_code, threads
from cpu.runtime.cache import take

# Before the first parallel kernel, and before PyTorch, if that comes later.
threads.settle()

# Dense and sparse queues enter parallel kernels from two threads at once, which aborts Numba's fallback layer "workqueue":
# insist on a thread-safe one, tbb, or omp where there is none, unless the user named a layer.
if numba.config.THREADING_LAYER == "default":
    numba.config.THREADING_LAYER = "threadsafe"

numba.config.CACHE_DIR = cache.kernel_cache()
take()
machine_code.on_demand()
