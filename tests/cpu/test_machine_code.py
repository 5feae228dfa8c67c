"""Machine code is made of what Python calls alone; what is called by others still does all that it did."""

import numba
import numpy as np
import pytest

from cpu.runtime.compiled import called, launched
from cpu.runtime.machine_code import TRIED, Library

pytestmark = pytest.mark.skipif(not numba.__version__.startswith(TRIED), reason=f"knows Numba {TRIED}x")


@called(cache=False)
def square(x):
    if x < 0:
        raise ValueError("below 0", x)
    return x * x


@launched(cache=False, parallel=True)
def squares(out, x):
    for i in numba.prange(x.size):
        out[i] = square(x[i])


@launched(cache=False)
def square_of(x):
    return square(x)


def test_machine_code_of_what_python_calls_alone():
    x, out = np.arange(5.0), np.empty(5)
    squares(out, x)
    np.testing.assert_array_equal(out, x * x)
    (outer,), (inner,) = ([made.library for made in kernel.overloads.values()] for kernel in (squares, square))
    assert isinstance(outer, Library) and outer._made and not inner._made

    square_of(2.0)  # an error of what has no machine code of its own is told with its number
    with pytest.raises(ValueError, match="below 0") as told:
        square_of(-3.0)
    assert told.value.args == ("below 0", -3.0)


def test_an_address_that_is_asked_for_is_given():
    """As of a function that is passed to another, and of wrappers that NumPy calls."""

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()", target="parallel")
    def total(x, out):
        out[0] = 0
        for i in range(x.size):
            out[0] += x[i]

    np.testing.assert_array_equal(total(np.ones((3, 4))), [4, 4, 4])
    assert numba.njit(lambda f, x: f(x))(numba.cfunc("float64(float64)")(lambda x: x + 1), 2.0) == 3
