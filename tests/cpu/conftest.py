"""What tests of kernels on the CPU share."""

import numba
import pytest


@pytest.fixture
def check_threads():
    """Some work makes arrays of the same bytes at 1, 2 and 4 threads; None is as good as an array."""

    def at(number, work):
        numba.set_num_threads(number)
        return tuple(one if one is None else one.tobytes() for one in work())

    def check(work):
        assert len({at(number, work) for number in (1, 2, 4)}) == 1

    before = numba.get_num_threads()
    yield check
    numba.set_num_threads(before)
