"""Arithmetic with Numba, and all that branches. Arrays come in, never objects of `hybrid`."""

import numba

# Dense and sparse queues enter parallel kernels from two threads at once, which aborts Numba's fallback layer "workqueue":
# insist on a thread-safe one (tbb or omp) unless the user named a layer.
if numba.config.THREADING_LAYER == "default":
    numba.config.THREADING_LAYER = "threadsafe"
