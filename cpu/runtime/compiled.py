"""Decorators that compile functions only for their actual callers.

For each signature Numba compiles the function and two wrappers, callable from Python and from C. These take a fifth to a third
of the compile time that a user waits for at a kernel's first use. C calls none of these kernels, and most are called by other
compiled functions only.

    launched  by Python
    called    by compiled functions only: a call from Python ends the process
    inlined   as called, but inlined into its caller. Without reference counts: a count is an atomic addition contended by
              all threads, and costs more than a row does
"""

from functools import partial
from typing import Any

import numba
from numpy.typing import NDArray

# Type of the kernels' arrays, for annotations: NumPy's; docstrings give dtype and order.

Array = NDArray[Any]


launched = partial(numba.njit, cache=True, nogil=True, no_cfunc_wrapper=True)
called = partial(launched, no_cpython_wrapper=True)
inlined = partial(called, _nrt=False, forceinline=True)
