"""What finds near rows without looking at all of them: an Annoy forest or a graph of hnswlib, behind one interface.

An index proposes; what it proposes is scored against the table, so scores are always right, but a neighbour may be missed.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from cpu.output.topk import Excluded
from cpu.runtime.compiled import Array
from cpu.search import brute_force, forest, graph

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


# An index that is chosen by measurement: the fastest that reaches a recall on the vectors and queries at hand.
#
# Kinds and sizes are tried on at most SAMPLE rows, evenly taken. The fastest are made over all rows, and how much effort they
# need for the recall is measured there. Where exact search is nearly as fast, there is no index.

Sizes = Sequence[tuple[str, int]]
SIZES = (("hnsw", 8), ("annoy", 10), ("hnsw", 16), ("annoy", 40), ("hnsw", 32))
SAMPLE = 10_000  # rows of the first trials
FINAL = 2  # kinds and sizes that are then tried on all rows, if one of them reaches the recall
QUERIES = 256  # of a measurement
NOISE = 0.5  # of queries that are made from rows: beside the rows' own spread
DEAREST = 2**17  # effort
GAIN = 0.9  # of exact search's time: what is hardly faster is not worth what it misses


class Choice(NamedTuple):
    """What was chosen, and what it was measured to do.

    kind     "annoy", "hnsw" or "exact"
    size     trees of a forest, links of a graph; 0: exact
    effort   nodes or rows that a query visits; 0: exact
    k        how many nearest were asked for
    recall   which share of them it found
    seconds, exact_seconds  of a query, and of one by exact search
    """

    kind: str
    size: int
    effort: int
    k: int
    recall: float
    seconds: float
    exact_seconds: float

    def line(self) -> str:
        """The choice in a line."""
        rate, exact_rate = 1 / self.seconds, 1 / self.exact_seconds
        if self.kind == "exact":
            return f"exact, {exact_rate:,.0f} queries/s: no index is faster at this recall"
        what = {"annoy": "{} trees, search {:,}", "hnsw": "{} links, effort {:,}"}[self.kind]
        return (
            f"{self.kind}, {what.format(self.size, self.effort)}: recall@{self.k} {self.recall:.3f}, {rate:,.0f} queries/s "
            f"against {exact_rate:,.0f} exactly"
        )


class Walked(NamedTuple):
    """The effort of a query, the recall that it reaches, and its seconds."""

    effort: int
    recall: float
    seconds: float


class Trial:
    """Vectors, queries and what is right: measures indexes over them."""

    def __init__(self, vectors: Array, hidden: Array, metric: str, k: int, recall: float):
        self.vectors, self.hidden, self.metric, self.k, self.wanted = vectors, hidden, metric, k, recall
        self.truth, self._scores = empty(len(hidden), k, vectors.dtype)
        self._found = self.truth.copy()
        self.exact_seconds = self._seconds(None, 0)

    def walk(self, made: Index, limit: float) -> Walked | None:
        """The least effort that reaches the recall; None where a query then takes `limit` seconds or more.

        Twice the effort each time, then the steps between the last two are halved.
        """
        low, high = self.k // 2, self.k
        while (recall := self._recall(made, high)) < self.wanted:
            if high > DEAREST or self._seconds(made, high, 1) >= limit:
                return None
            low, high = high, 2 * high
        while high - low > max(1, high // 16):
            middle = (low + high) // 2
            if (found := self._recall(made, middle)) < self.wanted:
                low = middle
            else:
                high, recall = middle, found
        seconds = self._seconds(made, high)
        return Walked(high, recall, seconds) if seconds < limit else None

    def _recall(self, made: Index, effort: int) -> float:
        search(self._found, self._scores, self.vectors, self.hidden, self.metric, made, effort)
        return recall(self.truth, self._found)

    def _seconds(self, made: Index | None, effort: int, times: int = 3) -> float:
        """Of a query, the least of some times; without an index of an exact one, which writes the truth."""
        taken = []
        for _ in range(times + (times > 1)):  # the first may compile
            start = time.perf_counter()
            if made:
                search(self._found, self._scores, self.vectors, self.hidden, self.metric, made, effort)
            else:
                brute_force.search(self.truth, self._scores, self.vectors, self.hidden, self.metric)
            taken.append(time.perf_counter() - start)
        return min(taken) / len(self.hidden)


def choose(
    vectors: Array,
    hidden: Array,
    metric: str,
    k: int,
    recall: float,
    seed: int,
    threads: int,
    before: Choice | None = None,
) -> tuple[Index | None, Choice]:
    """The fastest index over vectors (V, D) that finds this share of the k nearest of queries (B, D), and its figures.

    before  an earlier choice for the same table: its kind and size are taken where they still reach the recall

    None in place of an index: exact search is the fastest.
    """
    trial = Trial(vectors, hidden, metric, k, recall)
    if before and before.kind != "exact":
        made, choice = _fastest(trial, [before[:2]], 1, seed, threads)
        if made:
            return made, choice
    there = {"annoy": forest.there(), "hnsw": graph.there()}
    sizes = [(kind, size) for kind, size in SIZES if there[kind]]
    if len(vectors) <= SAMPLE:
        return _fastest(trial, sizes, len(sizes), seed, threads)
    return _fastest(trial, _promising(trial, sizes, seed, threads), FINAL, seed, threads)


def _fastest(trial: Trial, sizes: Sizes, least: int, seed: int, threads: int) -> tuple[Index | None, Choice]:
    """Of the first `least` sizes, and of those after them as long as none has reached the recall."""
    best, choice = None, Choice("exact", 0, 0, trial.k, 1.0, trial.exact_seconds, trial.exact_seconds)
    limit = GAIN * trial.exact_seconds
    for number, (kind, size) in enumerate(sizes):
        if best and number >= least:
            break
        made = make(kind, trial.vectors, trial.metric, size, seed, threads)
        if found := trial.walk(made, limit):
            best, limit = made, found.seconds
            choice = Choice(kind, size, found.effort, trial.k, found.recall, found.seconds, trial.exact_seconds)
    return best, choice


def _promising(trial: Trial, sizes: Sizes, seed: int, threads: int) -> Sizes:
    """The kinds and sizes to try on all rows: those that are faster than exact search on a sample, the fastest first.

    Also the slower of two: over all rows a graph of few links may never reach a recall that it reaches on the sample.
    """
    step = -(-len(trial.vectors) // SAMPLE)
    sample = Trial(np.ascontiguousarray(trial.vectors[::step]), trial.hidden, trial.metric, trial.k, trial.wanted)
    limit, found = GAIN * trial.exact_seconds, []
    for kind, size in sizes:
        if walked := sample.walk(make(kind, sample.vectors, trial.metric, size, seed, threads), limit):
            found.append((walked.seconds, kind, size))
    return [(kind, size) for _, kind, size in sorted(found)]


def queries(vectors: Array, seed: int) -> Array:
    """Queries (B, D) as users may have: some of the rows, with noise as large as NOISE times a row's own numbers."""
    rng = np.random.default_rng(seed)
    rows = vectors[rng.integers(0, len(vectors), QUERIES)]
    spread = np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
    noised: Array = (rows + NOISE * spread * rng.standard_normal(rows.shape)).astype(vectors.dtype)
    return noised
