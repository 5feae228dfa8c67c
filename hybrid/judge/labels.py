"""How good labels are that a model puts first, where an example may have any number of them.

All take the same two: `ids` (n, k), the labels that a model puts first, distinct, the likeliest first, -1 where it has no more;
and `entries` (n, V) scipy CSR, an entry for each label that an example has. Ties are broken by whoever ranks: `ranked` puts the
lower number first. An example without labels has nothing to be found: its precision is 0, from recall and nDCG it is left
out, to propensity-scored precision it adds nothing. `weight` (n,) of examples; None: all count the same.

Every figure raises ValueError for no example, for entries as check.csr does, for arrays that do not fit together, for labels
that stand twice in a row of `ids`, and, but for precision, where no example that counts has a label.
"""

from typing import Any

import numpy as np

from .. import check


def ranked(scores: Any, k: int) -> np.ndarray:
    """The k labels of the highest scores, (n, k) int32, the highest first, the lower number first among equals.

    scores  (n, V) array. ValueError for k outside 1 to V
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or not 1 <= k <= scores.shape[1]:
        raise ValueError(f"scores {scores.shape}, k {k}: expected scores (n, V) and k from 1 to V")
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)


def precision(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """precision@k: the share of the k labels put first that examples have; the mean over all of them."""
    hits, _ = _hits("precision", ids, entries)
    return float(np.average(hits.sum(axis=1), weights=weight) / ids.shape[1])


def recall(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """recall@k: the share of an example's labels that are among the k put first; the mean over examples with labels."""
    hits, entries = _hits("recall", ids, entries)
    own = np.diff(entries.indptr)
    return _mean("recall", hits.sum(axis=1) / np.maximum(own, 1), own > 0, weight)


def ndcg(ids: np.ndarray, entries: Any, weight: np.ndarray | None = None) -> float:
    """nDCG@k: a hit at rank r = 1 .. k counts 1 / log2(r + 1), over what the best ranking of the example's labels counts;
    the mean over examples with labels (Järvelin and Kekäläinen 2002)."""
    hits, entries = _hits("ndcg", ids, entries)
    own = np.diff(entries.indptr)
    worth = 1 / np.log2(np.arange(ids.shape[1]) + 2)
    ideal = np.cumsum(worth)[np.clip(own, 1, len(worth)) - 1]
    return _mean("ndcg", hits @ worth / ideal, own > 0, weight)


def propensities(entries: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """How likely a label that applies was noted, (V,), from how often N_l of N training examples have it:

        1 / (1 + c e^(-a log(N_l + b))),    c = (log N - 1) (b + 1)^a

    entries  (N, V) CSR of the training examples
    a, b     0.55 and 1.5 where nothing is known; 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon

    Jain, Prabhu and Varma 2016, "Extreme multi-label loss functions for recommendation, tagging, ranking & other missing label
    applications". ValueError for fewer than 3 examples, for which c is not positive.
    """
    entries = check.csr("entries", entries)
    if entries.shape[0] < 3:
        raise ValueError(f"propensities: found {entries.shape[0]} training examples, expected at least 3")
    counts = np.bincount(entries.indices, minlength=entries.shape[1])
    c = (np.log(entries.shape[0]) - 1) * (b + 1) ** a
    rarity: np.ndarray = 1 / (1 + c * (counts + b) ** -a)
    return rarity


def propensity_precision(
    ids: np.ndarray, entries: Any, propensity: np.ndarray, weight: np.ndarray | None = None
) -> float:
    """Propensity-scored precision@k, normalised: the sum of 1 / p_l over hits, over that of the best possible rankings.

    propensity  (V,) p_l, above 0: see `propensities`

    Jain et al. 2016; normalised over all examples at once, as the Extreme Classification Repository does it.
    """
    hits, entries = _hits("propensity_precision", ids, entries)
    if np.shape(propensity) != (entries.shape[1],) or not (np.asarray(propensity) > 0).all():
        raise ValueError(f"propensity: found {np.shape(propensity)}, expected {entries.shape[1]} numbers above 0")
    worth = 1 / np.asarray(propensity)
    found = np.where(hits, worth[ids], 0).sum(axis=1)
    counts = np.ones(len(ids)) if weight is None else weight
    best = float(counts @ _most(entries, worth, ids.shape[1]))
    if not best > 0:
        raise ValueError("propensity_precision: no example that counts has a label")
    return float(counts @ found) / best


def _most(entries: Any, worth: np.ndarray, k: int) -> np.ndarray:
    """The worth of the k labels that are worth most, of each example, (n,)."""
    row = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
    each = worth[entries.indices]
    order = np.lexsort((-each, row))
    rank = np.arange(len(order)) - entries.indptr[row]  # rows keep their places, so that a row's best come first
    return np.bincount(row, np.where(rank < k, each[order], 0), entries.shape[0])


def _hits(name: str, ids: np.ndarray, entries: Any) -> tuple[np.ndarray, Any]:
    """(n, k) bool: which of the labels put first an example has; and the entries, checked."""
    entries = check.csr("entries", entries)
    n, k = ids.shape
    if not n:
        raise ValueError(f"{name}: found no example")
    if not k or entries.shape[0] != n or ids.max() >= entries.shape[1]:
        raise ValueError(
            f"{name}: found ids {ids.shape} and labels {entries.shape}, expected ids (n, k) of labels (n, V)"
        )
    rising = np.sort(ids, axis=1)
    if ((rising[:, 1:] == rising[:, :-1]) & (rising[:, 1:] >= 0)).any():
        raise ValueError(f"{name}: found a label twice in a row of ids, expected distinct ones")
    wide = np.int64(entries.shape[1])
    own = np.repeat(np.arange(n), np.diff(entries.indptr)) * wide + entries.indices
    said = np.arange(n)[:, None] * wide + ids
    return np.isin(said, own) & (ids >= 0), entries


def _mean(name: str, figures: np.ndarray, counts: np.ndarray, weight: np.ndarray | None) -> float:
    """The mean over examples that count."""
    weight = counts if weight is None else np.where(counts, weight, 0)
    if not np.sum(weight) > 0:
        raise ValueError(f"{name}: no example that counts has a label")
    return float(np.average(figures, weights=weight))
