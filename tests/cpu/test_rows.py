import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu import rows
from hybrid.contract import Learned
from tests.support.drawn_ids import bags, zipf
from tests.support.visits import check_close, copied, drawn, scatter, visit


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_scatter_is_numpys(count, width, many, seed):
    rng = np.random.default_rng(seed)
    ids, grad = zipf(rng, count, many), rng.integers(-9, 9, (many, width)).astype(np.float32)
    table = rng.integers(-9, 9, (count, width)).astype(np.float32)
    expected = table.copy()
    np.add.at(expected, ids, 2 * grad)
    rows.scatter(Learned(table), ids, grad, -2)
    np.testing.assert_array_equal(table, expected)
    out = np.empty_like(grad)
    rows.gather(out, table, ids)
    np.testing.assert_array_equal(out, table[ids])


def test_nothing_to_do():
    table = np.ones((3, 2), np.float32)
    none, empty = np.empty(0, np.int32), np.empty((0, 2), np.float32)
    rows.gather(empty, table, none)
    rows.scatter(Learned(table), none, empty, -1.0)
    rows.gather_mean(empty, table, np.zeros(1, np.int64), none, None)
    rows.scatter_mean(Learned(table), np.zeros(1, np.int64), none, None, empty, -1.0)
    assert (table == 1).all()


@pytest.mark.parametrize("name", ["sgd", "row-adagrad", "adagrad"])
def test_a_scatter_is_a_visit_an_occurrence(name, threads):
    rng, rate = np.random.default_rng(2), 0.2
    ids, grad = zipf(rng, 20, 90), rng.normal(size=(90, 37)).astype(np.float32)
    learned = drawn(rng, 20, 37, name)
    expected, serial = copied(learned), copied(learned, np.copy)
    scatter(expected, ids, grad, rate)
    for n in range(90):
        rows.scatter(serial, ids[n : n + 1], grad[n : n + 1], rate)
    rows.scatter(learned, ids, grad, rate)
    check_close(learned, expected, 5e-6)
    for array, wanted in zip(learned, serial, strict=True):
        assert array is None or array.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("name", "weighted"), [("sgd", False), ("sgd", True), ("row-adagrad", True), ("adagrad", False)]
)
def test_bags_scatter_what_they_gathered(name, weighted, threads):
    rng, rate = np.random.default_rng(3), 0.2
    bag_at = bags(rng, 6, 25)
    ids, grad = zipf(rng, 20, int(bag_at[-1])), rng.normal(size=(25, 37)).astype(np.float32)
    values = rng.normal(size=ids.size).astype(np.float32) if weighted else None
    learned = drawn(rng, 20, 37, name)
    expected, alone = copied(learned), copied(learned, np.copy)
    out, means = np.empty((2, 25, 37), np.float32)
    rows.gather_mean(out, learned.rows, bag_at, ids, values)
    rows.scatter_mean(learned, bag_at, ids, values, grad, rate)
    numba.set_num_threads(1)
    rows.gather_mean(means, alone.rows, bag_at, ids, values)
    rows.scatter_mean(alone, bag_at, ids, values, grad, rate)
    assert out.tobytes() == means.tobytes()
    assert all(one is None or one.tobytes() == other.tobytes() for one, other in zip(learned, alone, strict=True))
    for b, (first, last) in enumerate(itertools.pairwise(bag_at)):
        share = values[first:last] if weighted else np.full(last - first, 1 / max(last - first, 1))
        np.testing.assert_allclose(out[b], share @ expected.rows[ids[first:last]], atol=1e-5)
    for b, (first, last) in enumerate(itertools.pairwise(bag_at)):
        for n in range(first, last):
            visit(expected, ids[n], grad[b] * (values[n] if weighted else 1 / (last - first)), 0, rate)
    check_close(learned, expected, 5e-6)


def test_a_gradient_of_zero_moves_nothing_and_a_nan_stays_visible():
    learned = Learned(np.ones((2, 3), np.float32), squares=np.zeros(2, np.float32))
    rows.scatter(learned, np.array([0, 1], np.int32), np.array([[0.0, 0, 0], [0, np.nan, 0]], np.float32), 0.1)
    assert (learned.rows[0] == 1).all() and learned.squares[0] == 0
    assert np.isnan(learned.squares[1]) and np.isnan(learned.rows[1]).all()
