"""Arrays that begin on a cache line, on one node of memory or several; hints to the memory; its bandwidth."""

import numpy as np
import pytest

from cpu.runtime import memory
from cpu.runtime.memory import LINE, empty, pass_over, zeros
from hybrid.pvm.model import PVM
from hybrid.sparse import table
from tests.support.small_pvm import TINY


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


@pytest.fixture(params=[1, 2])
def nodes(request, tmp_path, monkeypatch):
    """A machine with so many nodes of memory; `online` is a file, and no node."""
    for name in ["online", *(f"node{number}" for number in range(request.param))]:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(memory, "NODES", tmp_path)
    return request.param


@pytest.mark.parametrize(
    ("shape", "dtype"), [((0, 3), np.float32), ((1,), np.uint16), ((7, 5), np.float64), ((4097, 3), np.float32)]
)
def test_all_numbers_are_written_and_the_same(threads, nodes, monkeypatch, shape, dtype):
    def used(shape, dtype):
        return np.full(shape, 7, dtype)

    monkeypatch.setattr(memory, "empty", used)
    made = memory.touched_zeros(shape, dtype)
    assert made.shape == shape and made.dtype == dtype and not made.any()
    given = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    found = memory.spread_pages(given)
    np.testing.assert_array_equal(found, given)
    assert (found is given) == (nodes == 1) and found.dtype == dtype


def test_tables_and_units_begin_with_the_same_numbers(nodes, monkeypatch):
    assert not table(33, 5).any()
    model = PVM(TINY, device="cpu", threads=1, seed=3)
    monkeypatch.setattr(memory, "_several", lambda: False)
    np.testing.assert_array_equal(model.weights, PVM(TINY, device="cpu", threads=1, seed=3).weights)
    assert model.weights.any() and not model.velocity.any()


def test_a_pass_leaves_the_numbers_as_they_are():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(700, 300)).astype(np.float32), rng.normal(size=1000)]
    before = [array.tobytes() for array in arrays]
    assert 0 < pass_over(arrays) < 1e13
    assert [array.tobytes() for array in arrays] == before
