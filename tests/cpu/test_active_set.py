"""The active set: an estimate of the sum over all classes that is right on average, whatever the index finds."""

import numpy as np
import pytest

from cpu import draws
from cpu.active_set import ActiveSet

CLASSES, WIDTH = 300, 8


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    weights, hidden = (rng.normal(size=(size, WIDTH)).astype(np.float32) for size in (CLASSES, 12))
    return weights, hidden, rng.integers(0, CLASSES, 12).astype(np.int32)


@pytest.mark.parametrize("exact_below", [0, CLASSES + 1])
def test_the_nearest_classes_are_active(problem, exact_below):
    weights, hidden, _ = problem
    active = ActiveSet(weights, most=60, exact_below=exact_below)
    np.testing.assert_array_equal(active.of(hidden), [])  # nothing is indexed yet
    active.renew()
    found = active.of(hidden)
    nearest = np.argsort(-hidden @ weights.T, axis=1)[:, :5]
    assert np.array_equal(found, np.unique(found)) and len(found) <= 60
    assert np.isin(nearest, found).mean() > (0.9 if exact_below == 0 else 0.999)


def test_the_index_is_of_the_copy_until_it_is_renewed(problem):
    weights, hidden, _ = problem
    active, other = (ActiveSet(weights, most=24, exact_below=0) for _ in range(2))
    active.renew()
    before = active.of(hidden)
    weights *= -1
    np.testing.assert_array_equal(active.of(hidden), before)
    np.copyto(other.indexed, active.indexed)  # as from a checkpoint
    other.filled()
    np.testing.assert_array_equal(other.of(hidden), before)
    active.renew()
    assert not np.array_equal(active.of(hidden), before)


def test_more_rows_than_classes_to_find(problem):
    weights, hidden, _ = problem
    active = ActiveSet(weights, most=3)
    active.renew()
    assert len(active.of(hidden)) <= 3
    nobody = ActiveSet(weights, most=0)
    nobody.renew()
    assert nobody.of(hidden).size == 0


def test_the_estimate_of_the_normaliser_is_unbiased_and_varies_less_than_without(problem):
    """The mean over draws of the sum of exp(logit) / p is the sum over all classes."""
    weights, hidden, target = problem
    weights[:] *= 1.5
    exact = np.exp(hidden.astype(float) @ weights.T.astype(float))
    active = ActiveSet(weights, most=60)
    active.renew()
    sure, nobody, sampler = active.of(hidden), np.empty(0, np.int32), draws.uniform(CLASSES)
    ids, lower, score = np.empty(200, np.int32), np.empty(200), np.empty(12)

    def estimates(sure, count):
        found = []
        for tick in range(2000):
            n = draws.draw(ids, lower, score, sampler, count, target, 0, tick, sure)
            found.append((exact[:, ids[:n]] / np.exp(lower[:n])).sum(axis=1))
        return np.array(found) / exact.sum(axis=1)

    with_active, without = estimates(sure, 40), estimates(nobody, 40 + len(sure))
    for found in (with_active, without):
        assert (np.abs(found.mean(axis=0) - 1) < 5 * found.std(axis=0) / np.sqrt(2000)).all()
    assert with_active.std(axis=0).mean() < 0.5 * without.std(axis=0).mean()
