"""The calibrated binary cross-entropy with shared negatives, against the formula; cpu/output/negatives.py moves the rows."""

import numpy as np
import pytest

from cpu import sampled_logistic
from cpu.output import negatives
from cpu.output.negatives import uniform
from hybrid.contract import Learned

CLASSES, WIDTH, BATCH, NEGATIVES = 40, 5, 9, 12


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    weights, hidden = (rng.normal(size=(size, WIDTH)).astype(np.float32) for size in (CLASSES, BATCH))
    target = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    return weights, rng.normal(size=CLASSES).astype(np.float32), hidden, target, rng.random(BATCH).astype(np.float32)


def step(weights, biases, hidden, target, weight, positive=0.3, draws=NEGATIVES, rate=0.1):
    grad, loss = np.full_like(hidden, np.nan), np.full(BATCH, np.nan, np.float32)
    work = negatives.workspace(BATCH, WIDTH, draws, np.float32)
    target[0] = shared_negatives_of(work, draws)[0]  # among the negatives, and left out
    count = negatives.draw(work, uniform(CLASSES), draws, target, 3, 4)
    learned = Learned(weights, biases)
    ids = sampled_logistic.learn(grad, loss, learned, work, count, hidden, target, weight, rate, positive)
    return grad, loss, ids


def shared_negatives_of(work, draws):
    count = negatives.draw(work, uniform(CLASSES), draws, np.zeros(1, np.int32), 3, 4)
    return work.ids[:count].copy()


def oracle(weights, biases, hidden, target, weight, ids, positive):
    """Loss and gradients in float64."""
    weights, hidden, rows = weights.astype(float), hidden.astype(float), np.arange(BATCH)
    logits = hidden @ weights.T + biases
    negative = np.zeros(logits.shape)
    negative[:, ids] = 1
    negative[rows, target] = 0
    yes = 1 / (1 + np.exp(-logits))
    loss = -positive * np.log(yes[rows, target]) - (negative * np.log1p(-yes)).sum(axis=1)
    pull = negative * yes
    pull[rows, target] = positive * (yes[rows, target] - 1)
    pull *= weight[:, None]
    return loss * weight, pull @ weights, pull.T @ hidden, pull.sum(axis=0)


def test_step_is_the_formula(problem):
    weights, biases, hidden, target, weight = (array.copy() for array in problem)
    before, biases_before = weights.copy(), biases.copy()
    grad, loss, ids = step(weights, biases, hidden, target, weight)
    assert target[0] in ids
    loss_, grad_, pulls, bias_pulls = oracle(before, biases_before, hidden, target, weight, ids, 0.3)
    np.testing.assert_allclose(loss, loss_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(grad, grad_, atol=1e-5)
    np.testing.assert_allclose(weights, before - 0.1 * pulls, atol=1e-5)
    np.testing.assert_allclose(biases, biases_before - 0.1 * bias_pulls, atol=1e-5)


@pytest.mark.parametrize("calibration", [0, 0.75, 1])
def test_beta_is_that_of_the_paper(calibration):
    """alpha (t (1 - 1 / alpha) + 1 / alpha), with the share of the classes that are drawn as alpha where they are few."""
    alpha = 256 / (54_542 - 1)
    expected = alpha * (calibration * (1 - 1 / alpha) + 1 / alpha)
    assert sampled_logistic.calibrated(256, 54_542, calibration) == pytest.approx(expected, rel=3e-3)
    assert sampled_logistic.calibrated(50, 50, calibration) == 1
