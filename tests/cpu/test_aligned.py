"""Arrays that begin on a cache line."""

import numpy as np
import pytest

from cpu.runtime.memory import LINE, empty, zeros


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
