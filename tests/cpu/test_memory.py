"""Arrays that begin on a cache line; the bandwidth of the memory."""

import numpy as np
import pytest

from cpu.runtime.memory import LINE, empty, pass_over, zeros


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (7, 1, 2), (1000, 33)])
def test_an_array_begins_on_a_cache_line_and_owns_all_that_it_shows(shape, dtype):
    for array in (empty(shape, dtype), zeros(shape, dtype)):
        assert array.shape == shape and array.dtype == dtype
        assert array.ctypes.data % LINE == 0 or not array.size
        assert array.flags.c_contiguous and array.flags.writeable
        array[...] = 1
        assert array.sum() == array.size
    assert not zeros(shape, dtype).any()


def test_a_pass_leaves_the_numbers_as_they_are():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(700, 300)).astype(np.float32), rng.normal(size=1000)]
    before = [array.tobytes() for array in arrays]
    assert 0 < pass_over(arrays) < 1e13
    assert [array.tobytes() for array in arrays] == before
