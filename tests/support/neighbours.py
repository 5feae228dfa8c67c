"""Vectors as training leaves them, and their nearest by all scores."""

import numpy as np


def clustered(rows, width, seed=0):
    """Vectors as training leaves them: in groups, of very different lengths."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(rows // 20 + 1, width))
    vectors = centres[rng.integers(0, len(centres), rows)] + 0.3 * rng.normal(size=(rows, width))
    return (vectors * rng.lognormal(0, 0.7, (rows, 1))).astype(np.float32)


def nearest(vectors, hidden, k, metric):
    """By all scores in float64: ids (B, k), the lower of equal ones first, and their scores."""
    scores = hidden.astype(float) @ vectors.astype(float).T
    if metric == "angular":
        lengths = np.linalg.norm(hidden, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(scores, ids, 1)
