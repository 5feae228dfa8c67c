"""The step of a head: a case, and its oracle in float64."""

import numpy as np


def case(classes=30, slots=7, width=5, batch=12, seed=0):
    """slot (V,), rows (S, D), hidden (B, D), target (B,), and a gradient to add to."""
    rng = np.random.default_rng(seed)
    slot = np.concatenate([np.arange(slots), rng.integers(0, slots, classes - slots)]).astype(np.int32)
    rows = rng.normal(size=(slots, width)).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return slot, rows, hidden, rng.integers(0, classes, batch).astype(np.int32), np.ones_like(hidden)


def oracle(slot, rows, hidden, target, grad, rate):
    """grad, loss and rows after a step, in float64."""
    logits = hidden.astype(float) @ rows.astype(float).T
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    at = np.arange(len(hidden)), slot[target]
    loss = -np.log(p[at])
    p[at] -= 1
    return grad + p @ rows, loss, rows - rate * p.T @ hidden
