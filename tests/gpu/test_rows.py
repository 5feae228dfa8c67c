"""Tables of vectors on the device: the same bits as the CPU's, whatever the order of blocks and warps."""

from types import SimpleNamespace

import numpy as np
import pytest

from cpu import rows as cpu_rows
from gpu import rows
from gpu.runtime.array import Array
from hybrid.contract import Learned
from tests.support.drawn_ids import bags, zipf

WIDTHS = (1, 3, 31, 32, 33, 100, 128, 300)


def normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def gathered(gpu, table, ids):
    out = gpu.empty((len(ids), table.shape[1]), np.float32)
    gpu.run(rows.gather, out, gpu.put(table), gpu.put(ids))
    return gpu.get(out)


def gathered_mean(gpu, table, bag_at, ids, values=None):
    out, values = gpu.empty((len(bag_at) - 1, table.shape[1]), np.float32), None if values is None else gpu.put(values)
    gpu.run(rows.gather_mean, out, gpu.put(table), gpu.put(bag_at), gpu.put(ids), values)
    return gpu.get(out)


def scattered(gpu, table, ids, grad, scale):
    there = gpu.put(table)
    gpu.run(rows.scatter, Learned(there), gpu.put(ids), gpu.put(grad), -scale)
    return gpu.get(there)


def scattered_mean(gpu, table, bag_at, ids, grad, scale):
    there = gpu.put(table)
    gpu.run(rows.scatter_mean, Learned(there), gpu.put(bag_at), gpu.put(ids), None, gpu.put(grad), -scale)
    return gpu.get(there)


def on_the_cpu(function, table, *arguments):
    """The table after a scatter, of which the last argument is by what the gradients are multiplied."""
    table = table.copy()
    function(Learned(table), *arguments[:-1], -arguments[-1])
    return table


@pytest.mark.parametrize("width", WIDTHS)
def test_the_same_bits_as_the_cpu(gpu, width, scale=-0.3):
    rng = np.random.default_rng(width)
    bag_at = bags(rng, 7, 30)
    ids = zipf(rng, 25, int(bag_at[-1]))
    table, grad, bag_grad = normal(rng, 25, width), normal(rng, ids.size, width), normal(rng, 30, width)
    means = np.empty_like(bag_grad)
    cpu_rows.gather_mean(means, table, bag_at, ids, None)
    assert gathered_mean(gpu, table, bag_at, ids).tobytes() == means.tobytes()
    expected = on_the_cpu(cpu_rows.scatter, table, ids, grad, scale)
    assert scattered(gpu, table, ids, grad, scale).tobytes() == expected.tobytes()
    expected = on_the_cpu(cpu_rows.scatter_mean, table, bag_at, ids, None, bag_grad, scale)
    assert scattered_mean(gpu, table, bag_at, ids, bag_grad, scale).tobytes() == expected.tobytes()


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("width", [3, 100])
def test_bags_of_more_ids_than_a_warp_has_lanes(gpu, width, valued):
    rng = np.random.default_rng(width)
    bag_at = np.cumsum([0, 33, 0, 64, 65, 7, 100])
    ids, table = zipf(rng, 25, int(bag_at[-1])), normal(rng, 25, width)
    values = normal(rng, ids.size, 1).reshape(-1) if valued else None
    expected = np.empty((6, width), np.float32)
    cpu_rows.gather_mean(expected, table, bag_at, ids, values)
    assert gathered_mean(gpu, table, bag_at, ids, values).tobytes() == expected.tobytes()


def test_long_lists_are_cut_and_stay_in_order(gpu, monkeypatch):
    monkeypatch.setattr(rows, "PART", 50)
    rng = np.random.default_rng(2)
    bag_at = bags(rng, 20, 40)
    ids = zipf(rng, 9, int(bag_at[-1]))
    table, grad, bag_grad = normal(rng, 9, 33), normal(rng, ids.size, 33), normal(rng, 40, 33)
    expected = on_the_cpu(cpu_rows.scatter, table, ids, grad, -0.1)
    assert scattered(gpu, table, ids, grad, -0.1).tobytes() == expected.tobytes()
    expected = on_the_cpu(cpu_rows.scatter_mean, table, bag_at, ids, None, bag_grad, -0.1)
    assert scattered_mean(gpu, table, bag_at, ids, bag_grad, -0.1).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("width", "optimiser"), [(1, "sgd"), (8, "adagrad"), (9, "sgd"), (128, "sgd"), (128, "adagrad"), (300, "adagrad")]
)
def test_segments_of_any_length(gpu, width, optimiser):
    """Around the number of warps that share a long one, and around what these ask for at once."""
    slices, rng = -(-width // 8), np.random.default_rng(width)
    lengths = np.array([1, slices - 1, slices, slices + 1, 2, 31, 33, 127, 128, 129, 256, 300])
    ids = rng.permutation(np.repeat(np.arange(lengths.size), lengths)).astype(np.int32)
    table, grad = normal(rng, lengths.size, width), normal(rng, ids.size, width)
    squares = np.zeros_like(table) if optimiser == "adagrad" else None
    there = Learned(gpu.put(table), squares=None if squares is None else gpu.put(squares))
    gpu.run(rows.scatter, there, gpu.put(ids), gpu.put(grad), 0.1)
    cpu_rows.scatter(Learned(table, squares=squares), ids, grad, 0.1)
    if squares is None:
        assert gpu.get(there.rows).tobytes() == table.tobytes()
    else:
        np.testing.assert_allclose(gpu.get(there.rows), table, rtol=1e-5, atol=1e-5)


def test_rows_that_begin_anywhere(gpu, width=128):
    """Not at 16 bytes, as slices of other libraries' arrays may."""
    rng = np.random.default_rng(width)
    ids, table, grad = zipf(rng, 30, 70), normal(rng, 30, width), normal(rng, 70, width)
    whole = gpu.put(np.append(np.float32(0), table))
    there = Array(whole.pointer + 4, table.shape, np.float32, whole)
    out = gpu.empty(grad.shape, np.float32)
    gpu.run(rows.gather, out, there, gpu.put(ids))
    np.testing.assert_array_equal(gpu.get(out), table[ids])
    gpu.run(rows.scatter, Learned(there), gpu.put(ids), gpu.put(grad), -0.3)
    expected = on_the_cpu(cpu_rows.scatter, table, ids, grad, 0.3)
    assert gpu.get(whole)[1:].tobytes() == expected.tobytes()


def test_tables_of_more_than_2_to_the_31_numbers(gpu):
    """The last rows of such a table, whose other rows nobody touches, so that they need not exist."""
    if gpu.simulated:
        pytest.skip("the simulated driver refuses an argument that points to no allocation")
    first = 2**31 // 40 + 1
    ids, last = np.array([1, 0, 1], np.int32), np.arange(80, dtype=np.float32).reshape(2, 40)
    there, out = gpu.put(last), gpu.empty((3, 40), np.float32)
    table = Array(there.pointer - 4 * 40 * first, (first + 2, 40), np.float32, there)
    far = gpu.put(ids + np.int32(first))
    gpu.run(rows.gather, out, table, far)
    np.testing.assert_array_equal(gpu.get(out), last[ids])
    gpu.run(rows.scatter, Learned(table), far, out, -1.0)
    np.testing.assert_array_equal(gpu.get(there), last * [[2], [3]])


def test_bags_of_different_calls_share_scratch(gpu):
    rng = np.random.default_rng(6)
    for count in (12, 3, 40):
        bag_at = bags(rng, 5, count)
        ids, table, grad = zipf(rng, 9, int(bag_at[-1])), normal(rng, 9, 8), normal(rng, count, 8)
        expected = on_the_cpu(cpu_rows.scatter_mean, table, bag_at, ids, None, grad, 2.0)
        assert scattered_mean(gpu, table, bag_at, ids, grad, 2.0).tobytes() == expected.tobytes()


def test_nothing_to_do(gpu):
    table = np.ones((3, 2), np.float32)
    none, empty, start = np.empty(0, np.int32), np.empty((0, 2), np.float32), np.zeros(1, np.int64)
    assert gathered(gpu, table, none).size == gathered_mean(gpu, table, start, none).size == 0
    assert (scattered(gpu, table, none, empty, 1.0) == 1).all()
    assert (scattered_mean(gpu, table, start, none, empty, 1.0) == 1).all()
    hollow = np.zeros(4, np.int64)
    assert not gathered_mean(gpu, table, hollow, none).any()
    assert (scattered_mean(gpu, table, hollow, none, np.ones((3, 2), np.float32), 1.0) == 1).all()


def test_a_nan_stays_visible(gpu):
    table = np.ones((3, 2), np.float32)
    moved = scattered(gpu, table, np.array([1], np.int32), np.array([[np.nan, 1]], np.float32), 1.0)
    assert np.isnan(moved).tolist() == [[False, False], [True, False], [False, False]]


@pytest.mark.parametrize(
    "pointer, width, aligned", [(160, 8, True), (32, 4, True), (150, 8, False), (168, 8, False), (160, 6, False)]
)
def test_rows_are_read_by_four_where_all_begin_at_16_bytes(pointer, width, aligned):
    table = SimpleNamespace(ndim=2, shape=(3, width), pointer=pointer)
    factors = SimpleNamespace(ndim=1, shape=(3,), pointer=4)
    assert rows._aligned(table, None, factors) is aligned
