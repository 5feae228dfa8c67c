import numpy as np
import pytest

from gpu.runtime.array import Array, adopt


def array(shape=(4, 3), pointer=1024):
    return Array(pointer, shape, np.float32, "memory")


def test_rows_are_cut_without_a_copy():
    part = array()[1:3]
    assert (part.shape, part.pointer, part.nbytes, part.keep) == ((2, 3), 1024 + 12, 24, "memory")
    assert array()[:0].shape == (0, 3) and array()[2:1].shape == (0, 3) and array()[-1:].pointer == 1024 + 36


def test_only_rows_without_steps_can_be_cut():
    with pytest.raises(TypeError, match="slice of rows, found 1"):
        array()[1]
    with pytest.raises(ValueError, match="without steps"):
        array()[::2]


def test_a_shape_may_change_its_size_may_not():
    assert array().reshape(-1, 6).shape == (2, 6) and array().reshape(12).shape == (12,)
    assert array()[:0].reshape(0, 5).shape == (0, 5)
    with pytest.raises(ValueError, match=r"\(4, 3\) cannot take the shape \(5, -1\)"):
        array().reshape(5, -1)


def test_adopted_is_what_was_offered():
    given = array((2, 5))
    found = adopt(given)
    assert (found.pointer, found.shape, found.dtype, found.keep) == (1024, (2, 5), np.float32, given)


def test_adopted_must_be_on_a_device_and_contiguous():
    with pytest.raises(TypeError, match="expected an array on a CUDA device, number 0, found ndarray"):
        adopt(np.zeros(3))

    class Columns:
        __cuda_array_interface__ = array().__cuda_array_interface__ | {"strides": (4, 16)}

    with pytest.raises(ValueError, match="C-contiguous"):
        adopt(Columns())
