"""The best classes of a mixture of trees, exactly, from lists of each tree's own best: Fagin's threshold algorithm.

A class that is in no list of depth d is, under every tree, at most as likely as the last of that tree's list; so the mixture of
these last probabilities bounds it. Lists are made twice as deep until the k-th best of the classes met is above the bound.

Fagin, Lotem and Naor 2001, "Optimal Aggregation Algorithms for Middleware".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cpu.excluded import Excluded

FIRST = 16  # classes of a list at least
AHEAD = 2  # times k: so deep are the first lists


def mixed(log_probs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """log sum_k shares[k] exp(log_probs[k]): (K, ...) -> (...), float64."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0; NaN goes through
        found: np.ndarray = np.logaddexp.reduce(
            log_probs + np.log(shares).reshape(-1, *[1] * (log_probs.ndim - 1)), axis=0
        )
    return found


def best(
    ids: np.ndarray,
    log_probs: np.ndarray,
    trees: Sequence[Any],
    shares: np.ndarray,
    hidden: np.ndarray,
    left_out: "Excluded | None",
    most: int,
) -> np.ndarray:
    """Write the k best classes of each row, equals by rising class; ids, log_probs (B, k). Returns the rows not done.

    trees   readouts with _find, _best_without and _score
    most    the depth at which lists are given up: a row that needs deeper ones is not done
    """
    k, rows = ids.shape[1], np.arange(len(hidden))
    depth = max(AHEAD * k, FIRST)
    while len(rows) and depth <= most:
        out = None if left_out is None else left_out.of(rows)
        lists, last = _lists(trees, np.ascontiguousarray(hidden[rows]), depth, out)
        values = _values(trees, shares, hidden, rows, lists)
        order = np.lexsort((lists, -values))[:, :k]
        ids[rows], log_probs[rows] = (np.take_along_axis(array, order, axis=1) for array in (lists, values))
        short = np.isneginf(last).any(axis=0)  # a list that ends has met every class
        rows = rows[~(short | (log_probs[rows, -1] >= mixed(last, shares)))]
        depth *= 2
    return rows


def _lists(
    trees: Sequence[Any], hidden: np.ndarray, depth: int, left_out: "Excluded | None"
) -> tuple[np.ndarray, np.ndarray]:
    """The classes of all lists (B, C), each once and otherwise -1; and the last log-probability of each list (K, B)."""
    ids = np.empty((len(trees), len(hidden), depth), np.int32)
    log_probs = np.empty(ids.shape, np.float32)
    for tree, own, values in zip(trees, ids, log_probs, strict=True):
        if left_out is None:
            tree._find(own, values, hidden)
        else:
            tree._best_without(own, values, hidden, left_out)
    classes = np.sort(np.concatenate(ids, axis=1), axis=1)
    classes[:, 1:][classes[:, 1:] == classes[:, :-1]] = -1
    return classes, log_probs[:, :, -1]


def _values(
    trees: Sequence[Any], shares: np.ndarray, hidden: np.ndarray, rows: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """The mixture's log-probability of each of the classes (B, C) of these rows, float32; -inf for none."""
    values = np.full(classes.shape, -np.inf, np.float32)
    place = np.nonzero(classes >= 0)
    size = min(tree.batch for tree in trees)  # each has scratch for as many rows as it was made for
    for first in range(0, len(place[0]), size):
        row, column = (at[first : first + size] for at in place)
        asked, target = hidden[rows[row]], classes[row, column]
        found = np.empty((len(trees), len(row)), np.float32)
        for tree, own in zip(trees, found, strict=True):
            tree._score(own, asked, target)
        values[row, column] = mixed(found, shares)
    return values
