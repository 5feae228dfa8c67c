"""Negative sampling: draws from the distribution asked for, and a step that meets each class once."""

import numpy as np
import pytest

from cpu import negative
from cpu.tree.logistic_rows import OWNERS
from hybrid.contract import Learned
from tests.support.visits import learn


def drawn(counts, seed=1, tick=0, shape=(2000, 50)):
    negatives = np.empty(shape, np.int32)
    negative.draw(negatives, negative.alias(counts), seed, tick)
    return negatives


@pytest.mark.parametrize("counts", [[0, 5, 0, 1, 1], [0, 3.34, 0, 1, 1], [1], [1000, 1, 1, 1, 1, 1], range(1, 200)])
def test_draws_follow_the_counts(counts):
    share = np.array(counts, float)
    share /= share.sum()
    found = np.bincount(drawn(counts).ravel(), minlength=len(counts)) / 1e5
    np.testing.assert_allclose(found, share, atol=5 * np.sqrt(0.25 / 1e5), rtol=0)  # five standard deviations
    assert not found[share == 0].any()


def test_draws_depend_on_seed_and_tick_alone(threads):
    first = drawn(range(1, 1000), seed=-3, tick=7, shape=(97, 5))
    np.testing.assert_array_equal(first, drawn(range(1, 1000), seed=-3, tick=7, shape=(97, 5)))
    assert first.sum() == 325092  # as first seen; the same at 1, 2 and 4 threads
    for seed, tick in ((-3, 8), (7, -3)):
        assert (drawn(range(1, 1000), seed=seed, tick=tick, shape=(97, 5)) != first).mean() > 0.9


def run(table, hidden, target, negatives, rate=0.1):
    work = negative.workspace(*hidden.shape, negatives.shape[1], hidden.dtype)
    grad, loss, table = np.empty_like(hidden), np.empty(len(hidden), hidden.dtype), table.copy()
    negative.step(grad, loss, Learned(table), work, hidden, target, negatives, None, rate)
    return grad, loss, table


def case(classes, width, batch, count):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(classes, width)).astype(np.float32)
    hidden = (rng.normal(size=(batch, width)) / np.sqrt(width)).astype(np.float32)
    target, negatives = (rng.integers(0, classes, shape).astype(np.int32) for shape in (batch, (batch, count)))
    return table, hidden, target, negatives


def lists(target, negatives):
    """Each class once, in the order of owners."""
    pairs = []
    for b, positive in enumerate(target.tolist()):
        met = [(positive, 1)] + [(v, 0) for v in dict.fromkeys(negatives[b].tolist()) if v != positive]
        pairs.append(sorted(met, key=lambda pair: pair[0] % OWNERS))
    return pairs


@pytest.mark.parametrize("classes, count", [(1, 3), (4, 5), (1000, 20), (50, 0)])
def test_step_learns_as_numpy_does(classes, count):
    table, hidden, target, negatives = case(classes, 37, 60, count)
    grad, loss, moved = run(table, hidden, target, negatives)
    rows = table.astype(np.float64)
    expected_grad, expected_loss = learn(rows, hidden.astype(np.float64), lists(target, negatives), 0.1)
    np.testing.assert_allclose(grad, expected_grad, rtol=0, atol=2e-5)
    np.testing.assert_allclose(loss, expected_loss, rtol=0, atol=2e-5)
    np.testing.assert_allclose(moved, rows, rtol=0, atol=2e-5)


@pytest.mark.parametrize("target", [[5, 5, 5], [5, 2, 5]])
def test_the_first_example_of_a_run_draws_for_all_of_it(target):
    target, alias = np.array(target, np.int32), negative.alias(np.ones(50))
    entries, cuts = np.full((3, 9), -7, np.int32), np.full((3, OWNERS + 1), -7, np.int64)
    negative.enter_runs(entries, cuts, *alias, target, 6, np.uint64(3), np.uint64(1))
    for b, one in enumerate(target):
        assert entries[b, 0] == 2 * one + 1
        if b and target[b - 1] == one:
            assert (entries[b, 1:] == -7).all() and (cuts[b] == -7).all()
        else:
            assert cuts[b, 0] == 0 and len({*cuts[b, 1:]}) == 1
            met = entries[b, 1 : cuts[b, 1]]
            assert 4 <= met.size <= 6 and not (met % 2).any() and 2 * one not in met and len({*met}) == met.size
