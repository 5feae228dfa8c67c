"""The step of a head: a case."""

import numpy as np


def case(classes=30, slots=7, width=5, batch=12, seed=0):
    """slot (V,), rows (S, D), hidden (B, D), target (B,), and a gradient to add to."""
    rng = np.random.default_rng(seed)
    slot = np.concatenate([np.arange(slots), rng.integers(0, slots, classes - slots)]).astype(np.int32)
    rows = rng.normal(size=(slots, width)).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return slot, rows, hidden, rng.integers(0, classes, batch).astype(np.int32), np.ones_like(hidden)
