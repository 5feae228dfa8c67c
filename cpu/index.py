"""What finds near rows without looking at all of them: an Annoy forest or a graph of hnswlib, behind one interface.

An index proposes; what it proposes is scored against the table, so scores are always right, but a neighbour may be missed.
"""

from typing import Any, Protocol

import numpy as np

from cpu import brute_force, forest, graph
from cpu.array import Array
from cpu.excluded import Excluded

CHECKS = {"annoy": forest.check, "hnsw": graph.check}
KINDS = (*CHECKS,)
NO_ROWS = np.empty(0, np.int32)


class Index(Protocol):
    """A table's rows, as they were when it was made."""

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Near rows of each query (B, D), (B, most) int32, filled up with -1. With more effort it finds more, more slowly."""


def check(kind: str) -> None:
    """ValueError where the library of a kind is missing."""
    if kind in CHECKS:
        CHECKS[kind]()


def make(kind: str, vectors: Array, metric: str, size: int, seed: int, threads: int) -> Index:
    """The index of a kind over all rows (V, D); size: the trees of a forest, the links of a graph."""
    if kind == "hnsw":
        return graph.Graph(vectors, metric, links=size, seed=seed, threads=threads)
    return forest.Forest(vectors, metric, trees=size, seed=seed, threads=threads)


def most(index: Index, k: int, changed: bool) -> int:
    """How many rows to ask for where k are wanted.

    Where rows have changed, some of what is proposed is not where the index knew it, and more are asked for. A forest has
    scored more than it is asked for, and gives them for nothing; a graph would walk further for them.
    """
    return k if isinstance(index, graph.Graph) and not changed else 2 * k + 16


def search(
    ids: Array,
    scores: Array,
    table: Array,
    hidden: Array,
    metric: str,
    index: Index,
    effort: int,
    changed: Array = NO_ROWS,
    skip: Array | None = None,
    without: Excluded | None = None,
) -> None:
    """As brute_force.search, but among what the index proposes and the rows that have changed since it was made.

    A query for which these are fewer than k is searched exactly.

    changed  (N,) int32, rising: rows to search exactly
    skip     (V,) bool: the same rows
    """
    left_out = int((without.last - without.first).max(initial=0)) if without else 0
    proposed = index.propose(hidden, most(index, ids.shape[1], changed.size > 0) + left_out, effort)
    if skip is not None and changed.size:
        proposed[skip[proposed]] = -1
    brute_force.search(ids, scores, table, hidden, metric, rows=changed, proposed=proposed, without=without)
    short = np.flatnonzero(ids[:, -1:] < 0)
    if short.size:
        more, their = ids[short], scores[short]
        left = without.of(short) if without else None
        brute_force.search(more, their, table, hidden[short], metric, without=left)
        ids[short], scores[short] = more, their


def recall(truth: Array, found: Array) -> float:
    """Which share of the true ids (B, k) were found (B, k)."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])) if truth.size else 1.0


def empty(rows: int, k: int, dtype: Any) -> tuple[Array, Array]:
    """Ids (B, k) and scores (B, k) to write to."""
    return np.empty((rows, k), np.int32), np.empty((rows, k), dtype)
