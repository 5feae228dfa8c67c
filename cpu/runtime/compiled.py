"""How functions are compiled: for those who call them, and for nobody else.

For each combination of types Numba compiles a function, and also two more through which Python and C could call it. These cost
a fifth to a third of the time that a user waits for at the first use of a kernel. C calls none of ours, and most are called by
other compiled functions only.

    launched  by Python
    called    by compiled functions only: a call from Python ends the process
    inlined   the same, into whatever calls it. Without reference counts: a count is an atomic addition that all threads fight
              over, and costs more than a row does
"""

from functools import partial
from typing import Any

import numba
from numpy.typing import NDArray

# The type of the arrays that kernels take, for annotations: NumPy's; what dtype and order they have stands in docstrings.

Array = NDArray[Any]


launched = partial(numba.njit, cache=True, nogil=True, no_cfunc_wrapper=True)
called = partial(launched, no_cpython_wrapper=True)
inlined = partial(called, _nrt=False, forceinline=True)
