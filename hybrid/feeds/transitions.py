"""How often one item comes soon after another, as a sparse table, and vectors that are alike where items are in it."""

from typing import Any

import numpy as np

from .interactions import Histories

DISTANCES, NEARNESS = 10, 0.8
DRAWN = 0.3  # of a row that begins as a vector: so much of it is drawn, so that items that are alike differ


def transitions(histories: Histories, distances: int = DISTANCES, nearness: float = NEARNESS) -> Any:
    """A scipy CSR array (V, V) float64: how much item j is expected soon after item i.

    distances  j counts up to so many places behind i
    nearness   a place further away counts so much as the one before it
    """
    from scipy import sparse

    size, user = len(histories.items), np.repeat(np.arange(len(histories.users)), np.diff(histories.at))
    table = sparse.csr_array((size, size))
    for distance in range(1, min(distances, len(user) - 1) + 1):
        same = user[distance:] == user[:-distance]
        pairs = histories.item[:-distance][same], histories.item[distance:][same]
        table += sparse.csr_array((np.full(same.sum(), nearness ** (distance - 1)), pairs), (size, size))
    return table


def vectors(histories: Histories, width: int, seed: int = 0) -> np.ndarray:
    """(V, width) float32: singular vectors of the logarithm of the table and its reverse, by falling importance.

    Items that the same ones come before and after are alike; an item that nobody has is 0. The last bits may differ with the
    number of threads of the linear algebra that SciPy was built with.
    """
    from scipy.sparse import linalg

    table = transitions(histories)
    table = (table + table.T).tocsr()
    table.data = np.log1p(table.data)
    start = np.random.default_rng(seed).normal(size=len(histories.items))
    found = np.zeros((len(histories.items), width), np.float32)
    most = min(width, len(found) - 1)
    left, values, _ = linalg.svds(table, most, v0=start)
    found[:, :most] = (left * np.sqrt(values))[:, ::-1]
    return found


def turned(rows: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Rows (V, D) that were drawn, turned towards vectors (V, D): as long as before; where a vector is 0, as they were."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    mixed = _unit(towards) + DRAWN * _unit(rows)
    made: np.ndarray = (length * _unit(mixed)).astype(rows.dtype)
    return made


def _unit(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > 1e-6, rows / np.maximum(length, 1e-6), 0)
