"""Search by an index of cpu/search/libraries.py, and the choice of one.

An index proposes rows, which are scored against the table. So scores are always right, but a neighbour may be missed. An index
never changes once it is built.

`choose` measures indexes and takes the fastest that reaches a recall on the given vectors and queries. It tries kinds and sizes
on at most SAMPLE evenly spaced rows. It builds the fastest over all rows and measures the effort they need for the recall. If
exact search is nearly as fast, there is no index. The reported figures use queries that were held out from the choice.
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
    ("faiss", 128), ("faiss", 512), ("hnsw", 8), ("hnsw", 16), ("voyager", 8), ("voyager", 16), ("annoy", 40), ("hnsw", 32),
)  # fmt: skip
SAMPLE = 10_000  # rows of the first trials
FINAL = 2  # kinds and sizes then tried on all rows, if one of them reaches the recall
QUERIES = 256  # maximum number of queries for the choice
HELD = 8192  # maximum number of other queries for its figures: the standard error of a recall of .9 is then below .003
NOISE = 0.5  # noise of queries made from rows, relative to the rows' own spread
DEAREST = 2**17  # maximum effort
GAIN = 0.9  # share of exact search's time: a smaller gain is not worth the missed neighbours


def search(
    ids: Array, scores: Array, table: Array, hidden: Array, metric: str, index: Index, effort: int,
    changed: Array | None = None, without: Excluded | None = None,
) -> None:  # fmt: skip
    """Searches like brute_force.search, but only the index's proposals and the rows changed since it was built.

    A query with fewer than k such rows is searched exactly.

    changed  (V,) bool: rows to search exactly
    """
    rows = NO_ROWS if changed is None else np.flatnonzero(changed).astype(np.int32)
    # The index holds old values of changed rows, so more proposals are requested. A forest and cells have already scored more
    # rows than requested, so these are free; a graph would search longer for them.
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
    """Returns the share of the true ids (B, k) that are in ids (B, k)."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, ids, strict=True)])) if truth.size else 1.0


def empty(rows: int, k: int, dtype: Any) -> tuple[Array, Array]:
    """Returns uninitialised ids (B, k) and scores (B, k)."""
    return np.empty((rows, k), np.int32), np.empty((rows, k), dtype)


class Choice(NamedTuple):
    """The chosen index and its measurements.

    kind     one of KINDS but "auto"
    size     trees of a forest, links of a graph, rows of a cell; 0: exact
    effort   nodes, rows or cells that a query visits; 0: exact
    k        number of nearest rows per query
    recall   share of these found, on queries held out from the choice
    seconds, exact_seconds  per query, and per query of exact search
    tried    the candidate kinds
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
        """Returns a one-line description."""
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
    """Returns the fastest index over vectors (V, D) with this recall of the k nearest of queries (B, D), and its figures.

    hidden  at most half of the queries, and QUERIES, are used for the choice, at most HELD of the others for the figures
    before  an earlier choice for the same table: its kind and size are reused if they still reach the recall

    None in place of an index: exact search is the fastest.
    """
    step = max(2, -(-len(hidden) // QUERIES))
    trial = Trial(vectors, hidden[::step], metric, k, recall)
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
    held = np.delete(hidden, slice(None, None, step), axis=0)
    if made and len(held):
        held = np.ascontiguousarray(held[:: -(-len(held) // HELD)])
        choice = Trial(vectors, held, metric, k, recall, 1).judged(made, choice)
    return made, choice


def queries(vectors: Array, seed: int, many: int = QUERIES + HELD) -> Array:
    """Returns `many` realistic queries (B, D): some of the rows, with noise of NOISE times a row's root mean square."""
    rng = np.random.default_rng(seed)
    rows = vectors[rng.integers(0, len(vectors), many)]
    spread = np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
    return (rows + NOISE * spread * rng.standard_normal(rows.shape)).astype(vectors.dtype)


class Trial:
    """Vectors, queries and their exact neighbours: measures indexes over them, the least of several `times`."""

    def __init__(self, vectors: Array, hidden: Array, metric: str, k: int, recall: float, times: int = 3):
        self.vectors, self.hidden, self.metric, self.k, self.wanted = vectors, hidden, metric, k, recall
        self._times = times
        self.truth, self._scores = empty(len(hidden), k, vectors.dtype)
        self._ids = self.truth.copy()
        self.exact_seconds = self._seconds(None, 0)

    def walk(self, made: Index, limit: float) -> tuple[int, float, float] | None:
        """Returns the least sufficient effort, its recall and seconds per query; None unless these are below `limit`.

        Doubles the effort until the recall is reached, then bisects between the last two.
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
        """Returns the choice with the figures of these queries."""
        recall, seconds = self._recall(made, choice.effort), self._seconds(made, choice.effort)
        return choice._replace(recall=recall, seconds=seconds, exact_seconds=self.exact_seconds)

    def _recall(self, made: Index, effort: int) -> float:
        search(self._ids, self._scores, self.vectors, self.hidden, self.metric, made, effort)
        return recall(self.truth, self._ids)

    def _seconds(self, made: Index | None, effort: int, times: int = 0) -> float:
        """Returns the least of several times per query; without an index, of exact search, which writes the truth."""
        times, taken = times or self._times, []
        for _ in range(times + (times > 1)):  # the first may compile
            start = time.perf_counter()
            if made:
                search(self._ids, self._scores, self.vectors, self.hidden, self.metric, made, effort)
            else:
                brute_force.search(self.truth, self._scores, self.vectors, self.hidden, self.metric)
            taken.append(time.perf_counter() - start)
        return min(taken) / len(self.hidden)


def _fastest(trial: Trial, sizes: Sizes, least: int, seed: int, threads: int) -> tuple[Index | None, Choice]:
    """Returns the fastest of the first `least` sizes, and of further ones until one reaches the recall."""
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
    """Returns the kinds and sizes that beat exact search on a sample, the fastest first: candidates for all rows.

    Slower sizes of a kind are included: over all rows a graph of few links may not reach the sample's recall.
    """
    step = -(-len(trial.vectors) // SAMPLE)
    sample = Trial(np.ascontiguousarray(trial.vectors[::step]), trial.hidden, trial.metric, trial.k, trial.wanted)
    limit, fast = GAIN * trial.exact_seconds, []
    for kind, size in sizes:
        if walked := sample.walk(libraries.make(kind, sample.vectors, trial.metric, size, seed, threads), limit):
            fast.append((walked[2], kind, size))
    return [(kind, size) for _, kind, size in sorted(fast)]
