"""Search by an index of cpu/search/libraries.py, and the choice of one.

An index proposes; what it proposes is scored against the table, so scores are always right, but a neighbour may be missed. An
index never changes once it is built.

`choose` takes the index by measurement: the fastest that reaches a recall on the vectors and queries at hand. Kinds and sizes
are tried on at most SAMPLE rows, evenly taken. The fastest are made over all rows, and how much effort they need for the recall
is measured there. Where exact search is nearly as fast, there is no index. The figures of the choice are measured on
queries that it was not made by.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cpu.output.topk import Excluded
from cpu.runtime.compiled import Array
from cpu.search import brute_force, libraries
from cpu.search.libraries import Index

NO_ROWS = np.empty(0, np.int32)

Sizes = Sequence[tuple[str, int]]
SIZES = (
    ("faiss", 64), ("hnsw", 8), ("usearch", 8), ("annoy", 10), ("hnsw", 16), ("usearch", 16), ("voyager", 16), ("annoy", 40),
    ("hnsw", 32),
)  # fmt: skip
SAMPLE = 10_000  # rows of the first trials
FINAL = 2  # kinds and sizes that are then tried on all rows, if one of them reaches the recall
QUERIES = 256  # to choose by, and as many to measure what was chosen
NOISE = 0.5  # of queries that are made from rows: beside the rows' own spread
DEAREST = 2**17  # effort
GAIN = 0.9  # of exact search's time: what is hardly faster is not worth what it misses


def search(
    ids: Array, scores: Array, table: Array, hidden: Array, metric: str, index: Index, effort: int,
    changed: Array | None = None, without: Excluded | None = None,
) -> None:  # fmt: skip
    """As brute_force.search, but among what the index proposes and the rows that have changed since it was made.

    A query for which these are fewer than k is searched exactly.

    changed  (V,) bool: rows to search exactly
    """
    rows = NO_ROWS if changed is None else np.flatnonzero(changed).astype(np.int32)
    # Of changed rows the index does not know where they are now, so more are asked for. A forest and cells have scored more
    # than they are asked for, and give them for nothing; a graph would walk further for them.
    most = ids.shape[1] if index.walks and not rows.size else 2 * ids.shape[1] + 16
    most += int((without.last - without.first).max(initial=0)) if without else 0
    proposed = index.propose(hidden, most, effort)
    if changed is not None and rows.size:
        proposed[changed[proposed]] = -1
    brute_force.search(ids, scores, table, hidden, metric, rows=rows, proposed=proposed, without=without)
    short = np.flatnonzero(ids[:, -1:] < 0)
    if short.size:
        more, their = ids[short], scores[short]
        left = without.of(short) if without else None
        brute_force.search(more, their, table, hidden[short], metric, without=left)
        ids[short], scores[short] = more, their


def recall(truth: Array, ids: Array) -> float:
    """Which share of the true ids (B, k) were found (B, k)."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, ids, strict=True)])) if truth.size else 1.0


def empty(rows: int, k: int, dtype: Any) -> tuple[Array, Array]:
    """Ids (B, k) and scores (B, k) to write to."""
    return np.empty((rows, k), np.int32), np.empty((rows, k), dtype)


class Choice(NamedTuple):
    """What was chosen, and what it was measured to do.

    kind     one of KINDS but "auto"
    size     trees of a forest, links of a graph, rows of a cell; 0: exact
    effort   nodes, rows or cells that a query visits; 0: exact
    k        how many nearest were asked for
    recall   which share of them it found, of queries that it was not chosen by
    seconds, exact_seconds  of a query, and of one by exact search
    tried    the kinds among which it was chosen
    """

    kind: str
    size: int
    effort: int
    k: int
    recall: float
    seconds: float
    exact_seconds: float
    tried: tuple[str, ...] = ()

    def line(self) -> str:
        """The choice in a line."""
        rate, exact_rate = 1 / self.seconds, 1 / self.exact_seconds
        among = f"; the fastest of {', '.join((*self.tried, 'exact'))}" if self.tried else ""
        if self.kind == "exact":
            return f"exact, {exact_rate:,.0f} queries/s: no index is faster at this recall{among}"
        what = libraries.LIBRARIES[self.kind].setting.format(self.size, self.effort)
        return (
            f"{self.kind}, {what}: recall@{self.k} {self.recall:.3f}, {rate:,.0f} queries/s against {exact_rate:,.0f} "
            f"exactly{among}"
        )


def choose(
    vectors: Array, hidden: Array, metric: str, k: int, recall: float, seed: int, threads: int, before: Choice | None = None,
) -> tuple[Index | None, Choice]:  # fmt: skip
    """The fastest index over vectors (V, D) that finds this share of the k nearest of queries (B, D), and its figures.

    hidden  every second of them chooses; the figures are those of the others
    before  an earlier choice for the same table: its kind and size are taken where they still reach the recall

    None in place of an index: exact search is the fastest.
    """
    trial = Trial(vectors, hidden[::2] if len(hidden) > 1 else hidden, metric, k, recall)
    sizes = [(kind, size) for kind, size in SIZES if libraries.there(kind)]
    made = None
    if before and before.kind != "exact":
        made, choice = _fastest(trial, [before[:2]], 1, seed, threads)
    if made is None:
        tried, least = (
            (sizes, len(sizes)) if len(vectors) <= SAMPLE else (_promising(trial, sizes, seed, threads), FINAL)
        )
        made, choice = _fastest(trial, tried, least, seed, threads)
    choice = choice._replace(tried=tuple(dict.fromkeys(kind for kind, _ in sizes)))
    return made, Trial(vectors, hidden[1::2], metric, k, recall).judged(made, choice) if made and len(
        hidden
    ) > 1 else choice


def queries(vectors: Array, seed: int) -> Array:
    """Queries (B, D) as users may have: some of the rows, with noise as large as NOISE times a row's own numbers."""
    rng = np.random.default_rng(seed)
    rows = vectors[rng.integers(0, len(vectors), 2 * QUERIES)]
    spread = np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
    noised: Array = (rows + NOISE * spread * rng.standard_normal(rows.shape)).astype(vectors.dtype)
    return noised


class Trial:
    """Vectors, queries and what is right: measures indexes over them."""

    def __init__(self, vectors: Array, hidden: Array, metric: str, k: int, recall: float):
        self.vectors, self.hidden, self.metric, self.k, self.wanted = vectors, hidden, metric, k, recall
        self.truth, self._scores = empty(len(hidden), k, vectors.dtype)
        self._ids = self.truth.copy()
        self.exact_seconds = self._seconds(None, 0)

    def walk(self, made: Index, limit: float) -> tuple[int, float, float] | None:
        """The least effort that reaches the recall, the recall, and a query's seconds; None where those are not below `limit`.

        Twice the effort each time, then the steps between the last two are halved.
        """
        low, high = self.k // 2, self.k
        while (recall := self._recall(made, high)) < self.wanted:
            if high > DEAREST or self._seconds(made, high, 1) >= limit:
                return None
            low, high = high, 2 * high
        while high - low > max(1, high // 16):
            middle = (low + high) // 2
            if (reached := self._recall(made, middle)) < self.wanted:
                low = middle
            else:
                high, recall = middle, reached
        seconds = self._seconds(made, high)
        return (high, recall, seconds) if seconds < limit else None

    def judged(self, made: Index, choice: Choice) -> Choice:
        """The choice with what it does for these queries."""
        recall, seconds = self._recall(made, choice.effort), self._seconds(made, choice.effort)
        return choice._replace(recall=recall, seconds=seconds, exact_seconds=self.exact_seconds)

    def _recall(self, made: Index, effort: int) -> float:
        search(self._ids, self._scores, self.vectors, self.hidden, self.metric, made, effort)
        return recall(self.truth, self._ids)

    def _seconds(self, made: Index | None, effort: int, times: int = 3) -> float:
        """Of a query, the least of some times; without an index of an exact one, which writes the truth."""
        taken = []
        for _ in range(times + (times > 1)):  # the first may compile
            start = time.perf_counter()
            if made:
                search(self._ids, self._scores, self.vectors, self.hidden, self.metric, made, effort)
            else:
                brute_force.search(self.truth, self._scores, self.vectors, self.hidden, self.metric)
            taken.append(time.perf_counter() - start)
        return min(taken) / len(self.hidden)


def _fastest(trial: Trial, sizes: Sizes, least: int, seed: int, threads: int) -> tuple[Index | None, Choice]:
    """Of the first `least` sizes, and of those after them as long as none has reached the recall."""
    best, choice = None, Choice("exact", 0, 0, trial.k, 1.0, trial.exact_seconds, trial.exact_seconds)
    limit = GAIN * trial.exact_seconds
    for number, (kind, size) in enumerate(sizes):
        if best and number >= least:
            break
        made = libraries.make(kind, trial.vectors, trial.metric, size, seed, threads)
        if walked := trial.walk(made, limit):
            effort, recall, limit = walked
            best, choice = made, Choice(kind, size, effort, trial.k, recall, limit, trial.exact_seconds)
    return best, choice


def _promising(trial: Trial, sizes: Sizes, seed: int, threads: int) -> Sizes:
    """The kinds and sizes to try on all rows: those that are faster than exact search on a sample, the fastest first.

    Also the slower of two: over all rows a graph of few links may never reach a recall that it reaches on the sample.
    """
    step = -(-len(trial.vectors) // SAMPLE)
    sample = Trial(np.ascontiguousarray(trial.vectors[::step]), trial.hidden, trial.metric, trial.k, trial.wanted)
    limit, fast = GAIN * trial.exact_seconds, []
    for kind, size in sizes:
        if walked := sample.walk(libraries.make(kind, sample.vectors, trial.metric, size, seed, threads), limit):
            fast.append((walked[2], kind, size))
    return [(kind, size) for _, kind, size in sorted(fast)]
