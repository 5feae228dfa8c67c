"""How good labels are that a model puts first, where an example may have any number of them."""

from typing import Any

import numpy as np


def precision(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """precision@k: the share of the k labels put first that examples have; the mean over all of them.

    ids      (n, k) labels, -1 where there is none
    entries  (n, V) scipy CSR: an entry for each label that an example has
    weight   (n,) of examples; None: all count the same

    Raises ValueError for no example.
    """
    n, k = ids.shape
    if not n:
        raise ValueError("precision: found no example")
    own = np.repeat(np.arange(n), np.diff(entries.indptr)) * entries.shape[1] + entries.indices
    said = np.arange(n)[:, None] * entries.shape[1] + ids
    hits = np.where(ids >= 0, np.isin(said, own), False).sum(axis=1)
    return float(np.average(hits, weights=weight) / k)
