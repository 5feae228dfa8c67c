"""Implicit-feedback ALS: rows of users and items whose products tell who had what (Hu, Koren and Volinsky 2008)."""

from typing import Any, NamedTuple

import numpy as np

from hybrid.feeds.interactions import Histories
from hybrid.judge import ranking

BLOCK = 512  # rows solved for at a time


class Setting(NamedTuple):
    """Of a factorisation: numbers a row, weight of what was had beyond that of what was not, ridge, passes."""

    width: int = 64
    weight: float = 10.0
    ridge: float = 0.1
    passes: int = 10


def scores(train: Histories, seen: Histories, setting: Setting, seed: int = 0) -> ranking.Scores:
    """Users -> a score for every item: rows of items are learned from `train`, those of users solved for by `seen`."""
    items = learned(_matrix(train), setting, seed)

    def score(users: np.ndarray) -> np.ndarray:
        return solved(_matrix(seen)[users], items, setting) @ items.T

    return score


def learned(had: Any, setting: Setting, seed: int = 0) -> np.ndarray:
    """The rows of items (V, width), of a CSR array users x items."""
    items = np.random.default_rng(seed).normal(0, 0.1, (had.shape[1], setting.width)).astype(np.float32)
    by_item = had.T.tocsr()
    for _ in range(setting.passes):
        items = solved(by_item, solved(had, items, setting), setting)
    return items


def solved(had: Any, other: np.ndarray, setting: Setting) -> np.ndarray:
    """Each row's least squares against the other side: 1 for what it had, which weighs 1 + weight, 0 for all else."""
    gram = other.T @ other + np.float32(setting.ridge) * np.eye(other.shape[1], dtype=np.float32)
    found = np.empty((had.shape[0], other.shape[1]), np.float32)
    for first in range(0, len(found), BLOCK):
        part = had[first : first + BLOCK]
        left, right = np.broadcast_to(gram, (part.shape[0], *gram.shape)).copy(), part @ other
        for row, (begin, end) in enumerate(zip(part.indptr[:-1], part.indptr[1:], strict=True)):
            own = other[part.indices[begin:end]]
            left[row] += setting.weight * (own.T @ own)
        found[first : first + BLOCK] = np.linalg.solve(left, (1 + setting.weight) * right[:, :, None])[:, :, 0]
    return found


def _matrix(had: Histories) -> Any:
    """Users x items, 1 for each item that a user had."""
    from scipy import sparse

    made = sparse.csr_array((np.ones(len(had.item), np.float32), had.item, had.at), (len(had.users), len(had.items)))
    made.sum_duplicates()
    made.data[:] = 1
    return made
