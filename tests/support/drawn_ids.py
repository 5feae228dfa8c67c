"""Ids of rows, and bags of them, as data have them."""

import numpy as np


def zipf(rng, rows_, count):
    """Ids as words come: a few rows take most of them."""
    return np.minimum(rng.zipf(1.3, count) - 1, rows_ - 1).astype(np.int32)


def bags(rng, most, count):
    """Offsets of `count` bags, some of them empty."""
    return np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, count))]).astype(np.int64)
