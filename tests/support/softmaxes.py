"""Problems of a full softmax, and a step in float64: what both backends are held to."""

import numpy as np


def problem(classes, width, batch, spread=1.0, seed=0):
    """Weights (V, D), hidden vectors (B, D) and targets (B,)."""
    rng = np.random.default_rng(seed)
    weights = (spread * rng.normal(size=(classes, width))).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return weights, hidden, rng.integers(0, classes, batch).astype(np.int32)


def oracle(weights, hidden):
    """All log-probabilities (B, V), in float64."""
    logits = hidden.astype(float) @ weights.astype(float).T
    top = logits.max(axis=1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))


def check_step(found, weights, hidden, target):
    """The gradient, loss and weights that a step of rate 0.1 makes of these weights."""
    rows, log_probs = np.arange(len(target)), oracle(weights, hidden)
    miss = np.exp(log_probs)
    miss[rows, target] -= 1
    grad, loss, moved = found

    # A logit is a sum of D products of a few units; its error is the relative error of every probability
    largest = np.abs(weights).max() * np.abs(hidden).max()
    close = 20 * np.finfo(np.float32).eps * np.sqrt(hidden.shape[1]) * largest
    np.testing.assert_allclose(loss, -log_probs[rows, target], atol=close)
    np.testing.assert_allclose(grad, miss @ weights.astype(float), atol=close * np.abs(weights).max())
    np.testing.assert_allclose(moved, weights - 0.1 * miss.T @ hidden.astype(float), atol=close * len(hidden))
