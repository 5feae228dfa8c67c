"""What finds near rows without looking at all of them, behind one interface: an Annoy forest, or a graph of hnswlib.

An index proposes; what it proposes is scored against the table, so scores are always right, but a neighbour may be missed. An
index never changes once it is built; it is built and asked outside the interpreter's lock, so other threads go on. Neither
library checks widths, or that numbers are finite.

`choose` takes the index by measurement: the fastest that reaches a recall on the vectors and queries at hand. Kinds and sizes
are tried on at most SAMPLE rows, evenly taken. The fastest are made over all rows, and how much effort they need for the recall
is measured there. Where exact search is nearly as fast, there is no index.

Annoy: Bernhardsson 2013, https://github.com/spotify/annoy. hnswlib: Malkov and Yashunin 2016, arXiv:1603.09320.
"""

import importlib.util
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np

from cpu.output.topk import Excluded
from cpu.runtime.compiled import Array
from cpu.search import brute_force

LIBRARIES = {"annoy": "annoy", "hnsw": "hnswlib"}
EXTRAS = {"annoy": '"hybrid-engine[annoy]", with a C++ compiler', "hnsw": '"hybrid-engine[neighbours]"'}
NO_ROWS = np.empty(0, np.int32)
FEW = 16  # queries that are not worth a hand-off to other threads, of a forest
BUILD_SEARCH = 100  # of building a graph: 200 takes twice as long, and no smaller `effort` reached a recall by it

Sizes = Sequence[tuple[str, int]]
SIZES = (("hnsw", 8), ("annoy", 10), ("hnsw", 16), ("annoy", 40), ("hnsw", 32))
SAMPLE = 10_000  # rows of the first trials
FINAL = 2  # kinds and sizes that are then tried on all rows, if one of them reaches the recall
QUERIES = 256  # of a measurement
NOISE = 0.5  # of queries that are made from rows: beside the rows' own spread
DEAREST = 2**17  # effort
GAIN = 0.9  # of exact search's time: what is hardly faster is not worth what it misses


class Index(Protocol):
    """A table's rows, as they were when it was made."""

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Near rows of each query (B, D), (B, most) int32, filled up with -1. With more effort it finds more, more slowly."""


def there(kind: str) -> bool:
    """Whether the library of a kind is installed."""
    return importlib.util.find_spec(LIBRARIES[kind]) is not None


def check(kind: str) -> None:
    """ValueError, which says how to install it, where the library of a kind is missing."""
    if kind in LIBRARIES and not there(kind):
        raise ValueError(f'index "{kind}": needs {LIBRARIES[kind]}, which is not installed; pip install {EXTRAS[kind]}')


def make(kind: str, vectors: Array, metric: str, size: int, seed: int, threads: int) -> Index:
    """The index of a kind over all rows (V, D); metric "angular" or "dot".

    size     the trees of a forest, the links of a graph: with more, more neighbours are found, and building takes longer
    seed     equal seeds give equal indexes
    threads  build it; with more than one, which neighbours are missed may differ from run to run
    """
    return (Graph if kind == "hnsw" else Forest)(vectors, metric, size, seed, threads)


def search(
    ids: Array, scores: Array, table: Array, hidden: Array, metric: str, index: Index, effort: int,
    changed: Array | None = None, without: Excluded | None = None,
) -> None:  # fmt: skip
    """As brute_force.search, but among what the index proposes and the rows that have changed since it was made.

    A query for which these are fewer than k is searched exactly.

    changed  (V,) bool: rows to search exactly
    """
    rows = NO_ROWS if changed is None else np.flatnonzero(changed).astype(np.int32)
    # Of changed rows the index does not know where they are now, so more are asked for. A forest has scored more than it is
    # asked for, and gives them for nothing; a graph would walk further for them.
    most = ids.shape[1] if isinstance(index, Graph) and not rows.size else 2 * ids.shape[1] + 16
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


def choose(
    vectors: Array, hidden: Array, metric: str, k: int, recall: float, seed: int, threads: int, before: Choice | None = None,
) -> tuple[Index | None, Choice]:  # fmt: skip
    """The fastest index over vectors (V, D) that finds this share of the k nearest of queries (B, D), and its figures.

    before  an earlier choice for the same table: its kind and size are taken where they still reach the recall

    None in place of an index: exact search is the fastest.
    """
    trial = Trial(vectors, hidden, metric, k, recall)
    if before and before.kind != "exact":
        made, choice = _fastest(trial, [before[:2]], 1, seed, threads)
        if made:
            return made, choice
    sizes = [(kind, size) for kind, size in SIZES if there(kind)]
    if len(vectors) <= SAMPLE:
        return _fastest(trial, sizes, len(sizes), seed, threads)
    return _fastest(trial, _promising(trial, sizes, seed, threads), FINAL, seed, threads)


def queries(vectors: Array, seed: int) -> Array:
    """Queries (B, D) as users may have: some of the rows, with noise as large as NOISE times a row's own numbers."""
    rng = np.random.default_rng(seed)
    rows = vectors[rng.integers(0, len(vectors), QUERIES)]
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
        made = make(kind, trial.vectors, trial.metric, size, seed, threads)
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
        if walked := sample.walk(make(kind, sample.vectors, trial.metric, size, seed, threads), limit):
            fast.append((walked[2], kind, size))
    return [(kind, size) for _, kind, size in sorted(fast)]


class Forest:
    """Annoy's trees.

    For dot products every row gets one more number, which makes all rows equally long; a query gets a 0 there. Then the
    nearest by angle is the nearest by dot product (Bachrach et al. 2014, "Speeding Up the Xbox Recommender System").
    Annoy 1.17's own "dot" found 5 % of the 10 nearest words where this finds all, at the same cost.
    """

    def __init__(self, vectors: Array, metric: str, trees: int, seed: int, threads: int):
        import annoy

        squares = np.einsum("vd,vd->v", vectors, vectors, dtype=np.float64)
        more = np.sqrt(squares.max() - squares)[:, None] if metric == "dot" else vectors[:, :0]
        self._index: Any = annoy.AnnoyIndex(vectors.shape[1] + more.shape[1], "angular")
        self._index.set_seed(seed % 2**31 + 1)  # Annoy's generator stands still at 0
        for first in range(0, len(vectors), 1024):
            block = np.hstack([vectors[first : first + 1024], more[first : first + 1024]]).tolist()
            for row, vector in enumerate(block, first):
                self._index.add_item(row, vector)
        self._index.build(trees, threads)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """The nearest rows that a visit of `effort` nodes finds, (B, most) int32, filled up with -1."""
        index, threads = self._index, numba.get_num_threads()
        proposed = np.full((len(hidden), most), -1, np.int32)
        queries = np.pad(hidden, ((0, 0), (0, index.f - hidden.shape[1])))

        def ask(part: range) -> None:
            for b in part:
                near = index.get_nns_by_vector(queries[b].tolist(), most, effort)
                proposed[b, : len(near)] = near

        if len(hidden) < FEW or threads == 1:
            ask(range(len(hidden)))
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(ask, (range(first, len(hidden), threads) for first in range(threads))))
        return proposed


class Graph:
    """hnswlib's graph; links of a row to near rows are hnswlib's M.

    Dot products are hnswlib's "ip". The longer vectors by which a forest turns them into angles are no help to a graph: on
    vectors of lengths that differ as those of words do they found 4 % of the 10 nearest where this finds 90 %.
    """

    def __init__(self, vectors: Array, metric: str, links: int, seed: int, threads: int):
        import hnswlib

        self._index: Any = hnswlib.Index("ip" if metric == "dot" else "cosine", vectors.shape[1])
        self._index.init_index(len(vectors), M=links, ef_construction=BUILD_SEARCH, random_seed=seed % 2**31)
        self._index.add_items(vectors, num_threads=threads)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """The nearest rows that a walk which keeps `effort` of them finds, (B, most) int32, filled up with -1."""
        reached = min(most, self._index.element_count)
        proposed = np.full((len(hidden), most), -1, np.int32)
        self._index.set_ef(max(effort, reached))
        try:
            near, _ = self._index.knn_query(hidden, reached, num_threads=numba.get_num_threads())
            proposed[:, :reached] = near
        except RuntimeError:  # some query reached fewer rows: the graph has parts without a link between them
            pass
        return proposed
