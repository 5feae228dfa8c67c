import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu import softmax
from hybrid.contract import Learned
from tests.support.softmaxes import check_step, oracle, problem

CHUNK = softmax.CHUNK


def step(weights, hidden, target, rate):
    grad, loss = np.full_like(hidden, np.nan), np.full(len(hidden), np.nan, hidden.dtype)
    work = softmax.workspace(*hidden.shape, hidden.dtype)
    softmax.step(grad, loss, Learned(weights), work, hidden, target, None, rate)
    return grad, loss


def log_prob(weights, hidden, target):
    out = np.full(len(hidden), np.nan, hidden.dtype)
    softmax.log_prob(out, Learned(weights), softmax.workspace(*hidden.shape, hidden.dtype), hidden, target)
    return out


def best(weights, hidden, k):
    ids, log_probs = np.full((len(hidden), k), -1, np.int32), np.full((len(hidden), k), np.nan, hidden.dtype)
    softmax.best(ids, log_probs, Learned(weights), softmax.workspace(*hidden.shape, hidden.dtype), hidden)
    return ids, log_probs


# Classes, width, rows: fewer and more chunks than shards
SIZES = [(2, 1, 1), (CHUNK - 1, 8, 5), (CHUNK + 1, 17, 3), (20 * CHUNK + 7, 16, 33)]


@pytest.mark.parametrize("sizes", SIZES)
def test_step_against_float64(sizes):
    weights, hidden, target = problem(*sizes)
    before = weights.copy()
    check_step((*step(weights, hidden, target, 0.1), weights), before, hidden, target)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3 * CHUNK), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_best_is_the_head_of_a_sorted_list(classes, batch, k, seed):
    weights, hidden, _ = problem(classes, 3, batch, seed=seed)
    np.round(weights, out=weights)  # whole numbers: exact logits and many ties
    np.round(hidden, out=hidden)
    k = min(k, classes)
    logits = hidden @ weights.T
    order = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    ids, log_probs = best(weights, hidden, k)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_allclose(log_probs, np.take_along_axis(oracle(weights, hidden), order, 1), atol=1e-5)


@pytest.mark.parametrize("spread", [1e-20, 100.0, 1e4])
def test_logits_of_any_size(spread):
    """Logits grow from chunk to chunk of a shard: their sums overflow without a change of base."""
    weights, hidden, target = problem(40 * CHUNK, 8, 6, spread=spread)
    weights *= np.geomspace(1e-3, 1, len(weights), dtype=np.float32)[:, None]
    expected = oracle(weights, hidden)[np.arange(6), target]
    grad, loss = step(weights, hidden, target, 0.0)
    np.testing.assert_allclose(loss, -expected, rtol=1e-5, atol=1e-5)
    assert np.isfinite(grad).all()


def test_a_sum_that_overflows_although_no_term_does():
    """exp(88) is finite, the sum of three is not; a shard's first chunk has base 0, and the others one such class."""
    weights = np.zeros((5 * softmax.SHARDS * CHUNK, 1), np.float32)
    weights.reshape(softmax.SHARDS, 5, CHUNK)[:, 1:, 7] = 88
    hidden, target = np.ones((1, 1), np.float32), np.array([CHUNK + 7], np.int32)
    assert log_prob(weights, hidden, target)[0] == pytest.approx(-np.log(4 * softmax.SHARDS), abs=1e-4)


@pytest.mark.parametrize("classes", [40, 20 * CHUNK + 9])
def test_the_same_bits_at_any_number_of_threads(classes, check_threads):
    def run():
        weights, hidden, target = problem(classes, 24, 37)
        return *step(weights, hidden, target, 0.1), weights, *best(weights, hidden, 7)

    check_threads(run)


def test_a_step_does_not_depend_on_what_it_keeps(monkeypatch):
    """Also where bases change: logits grow from chunk to chunk of a shard, to hundreds."""
    found, spread = set(), 60.0
    for chunks in (0, 30, 1000):
        monkeypatch.setattr(softmax, "KEPT", chunks * 6 * CHUNK * 4)
        weights, hidden, target = problem(40 * CHUNK, 8, 6)
        weights *= spread * np.geomspace(1e-2, 1, len(weights), dtype=np.float32)[:, None]
        before, log_probs = weights.astype(float), oracle(weights, hidden)
        grad, loss = step(weights, hidden, target, 0.1)
        found.add(b"".join(array.tobytes() for array in (grad, loss, weights)))
    assert len(found) == 1
    miss = np.exp(log_probs) - np.eye(len(before))[target]
    np.testing.assert_allclose(weights, before - 0.1 * miss.T @ hidden, atol=1e-4 * spread)
    np.testing.assert_allclose(grad, miss @ before, atol=1e-4 * spread**2)
