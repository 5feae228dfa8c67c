"""Numba kernels, trees, search and sampling. Functions take arrays, never objects of `hybrid`."""

import numba

from cpu.runtime import cache, machine_code, threads
from cpu.runtime.cache import take

# Runs before the first parallel kernel, and before PyTorch if that is imported later.
threads.settle()

# Dense and sparse queues enter parallel kernels from two threads concurrently, which aborts Numba's fallback layer "workqueue".
# This requires a thread-safe layer, tbb or else omp, unless the user named one.
if numba.config.THREADING_LAYER == "default":
    numba.config.THREADING_LAYER = "threadsafe"

numba.config.CACHE_DIR = cache.kernel_cache()
take()
machine_code.on_demand()
