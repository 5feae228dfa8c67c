import numpy as np
import pytest

from cpu import sampled_softmax
from hybrid.contract import Learned
from tests.support.softmaxes import problem


def step(weights, hidden, target, sampler, negatives, rate=0.0, tick=0, seed=0):
    grad, loss = np.full_like(hidden, np.nan), np.full(len(hidden), np.nan, hidden.dtype)
    work = sampled_softmax.workspace(len(hidden), hidden.shape[1], negatives, hidden.dtype)
    count = sampled_softmax.draw(work, sampler, negatives, target, seed, tick)
    sampled_softmax.learn(grad, loss, Learned(weights), work, count, hidden, target, None, rate)
    return grad, loss, work


def draw(sampler, negatives, target=(0,)):
    work = sampled_softmax.workspace(len(target), 1, negatives, np.float64)
    count = sampled_softmax.draw(work, sampler, negatives, np.array(target, np.int32), 0, 0)
    return work.ids[:count], work.lower[:count]


def oracle(weights, hidden, target, ids, log_p):
    """Loss and gradients in float64, from the formula; log_p (V,)."""
    weights, hidden = weights.astype(float), hidden.astype(float)
    lowered = hidden @ weights.T - log_p
    taken = np.zeros(lowered.shape, bool)
    taken[:, ids] = True
    taken[np.arange(len(target)), target] = True
    lowered[~taken] = -np.inf
    top = lowered.max(axis=1, keepdims=True)
    norm = top + np.log(np.exp(lowered - top).sum(axis=1, keepdims=True))
    p = np.exp(lowered - norm)
    rows = np.arange(len(target))
    loss = norm[:, 0] - lowered[rows, target]
    p[rows, target] -= 1
    return loss, p @ weights, p.T @ hidden


@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (50, 7, 3, 20), (2000, 16, 130, 400), (300, 8, 65, 299)])
def test_step_against_float64(sizes):
    classes, width, batch, negatives = sizes
    weights, hidden, target = problem(classes, width, batch)
    before, sampler = weights.copy(), sampled_softmax.log_uniform(classes)
    q = np.diff(sampler.cumulative, prepend=0)
    log_p = np.log(1 - (1 - q) ** negatives)
    ids, lower = draw(sampler, negatives)
    np.testing.assert_allclose(lower, log_p[ids], rtol=1e-9)
    loss_, grad_, weight_grad = oracle(weights, hidden, target, ids, log_p)
    grad, loss, _ = step(weights, hidden, target, sampler, negatives, 0.1)
    close = 100 * np.finfo(np.float32).eps * np.sqrt(width)  # logits of a few units, products of a few times that
    np.testing.assert_allclose(loss, loss_, atol=close)
    np.testing.assert_allclose(grad, grad_, atol=close)
    np.testing.assert_allclose(weights, before - 0.1 * weight_grad, atol=close * np.sqrt(batch))


def test_logits_of_any_size():
    weights, hidden, target = problem(50, 8, 6)
    weights *= 1e4
    sampler = sampled_softmax.log_uniform(50)
    ids, _ = draw(sampler, 50, target=range(50))
    expected, _, _ = oracle(weights, hidden, target, ids, np.zeros(50))
    grad, loss, _ = step(weights, hidden, target, sampler, 50)
    np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-5)
    assert np.isfinite(grad).all()
