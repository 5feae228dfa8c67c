import gc

import numpy as np
import pytest

from gpu.runtime import array as arrays
from gpu.runtime.array import Array, adopt, taken


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


class OnHost(Array):
    """One whose memory is NumPy's, which so reads what DLPack says of it."""

    def __dlpack_device__(self):
        return 1, 0


class OnDevice:
    """NumPy's memory, said to be a device's."""

    def __init__(self, numbers, device=(2, 3)):
        self.numbers, self.device = numbers, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream):
        assert stream == -1
        return self.numbers.__dlpack__()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(4, 3), (7,), (), (2, 0, 3)])
def test_other_libraries_read_it_through_dlpack_and_it_reads_theirs(dtype, shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    mine = OnHost(numbers.ctypes.data, shape, dtype, numbers)
    theirs = np.from_dlpack(mine)
    assert theirs.shape == shape and theirs.dtype == numbers.dtype
    assert numbers.size == 0 or np.shares_memory(theirs, numbers)
    np.testing.assert_array_equal(theirs, numbers)
    adopted = adopt(OnDevice(numbers), 3)
    assert (adopted.shape, adopted.dtype, adopted.ordinal) == (shape, numbers.dtype, 3)
    assert adopted.pointer == numbers.ctypes.data or not numbers.size


def test_what_dlpack_lends_lives_until_it_is_given_back():
    def lent():
        gc.collect()
        return len(arrays._Lent.all)

    before, numbers = lent(), np.arange(6.0)
    mine = OnHost(numbers.ctypes.data, (6,), float, numbers)
    capsule = mine.__dlpack__()
    assert lent() == before + 1
    del capsule  # that nobody took
    assert lent() == before
    theirs = np.from_dlpack(mine)
    part = theirs[2:]
    del mine, theirs, numbers
    assert lent() == before + 1
    np.testing.assert_array_equal(part, [2, 3, 4, 5])
    del part
    assert lent() == before
    again, _ = taken(OnHost(1024, (2, 2), "f4", "memory").__dlpack__(), 0)
    assert lent() == before + 1 and again.pointer == 1024
    del again
    assert lent() == before


def test_dlpack_names_its_device_and_copies_nothing():
    part = Array(1024, (4, 3), np.float32, "memory", 2)[1:].reshape(9)
    assert part.__dlpack_device__() == (2, 2)
    for more in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="a device array is lent as it is"):
            part.__dlpack__(**more)
    with pytest.raises(TypeError, match="number 0, found OnDevice"):
        adopt(OnDevice(np.zeros(3)))
    with pytest.raises(ValueError, match="C-contiguous"):
        adopt(OnDevice(np.zeros((3, 4)).T), 3)
