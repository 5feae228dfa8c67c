"""The nearest rows of a table that is still being trained: an Annoy forest, and exact search where that is faster.

An Annoy index never changes once it is built. So a rebuild runs in a thread of its own, on a snapshot of the table, while
the old index answers queries; then the new index replaces it. Rows that have changed since the snapshot are searched
exactly, and what the forest proposes is scored against the present table: scores are always right, but a neighbour may be
missed. Annoy does not check widths, nor that numbers are finite: both are checked here.

Annoy: Bernhardsson 2013, https://github.com/spotify/annoy.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import annoy
import numpy as np

from cpu import brute_force, excluded
from cpu.array import Array
from cpu.excluded import Excluded

METRICS = ("angular", "dot")
# Measured on word vectors of width 128 (CBOW on WikiText-2, 28,911 rows), k = 10, 2 threads, default settings, recall
# 0.975: 256 queries at once take 211 us each by forest and 171 us exactly, one query alone 313 us and 827 us. At 100,000
# rows (the same with noise) the forest is 2 and 4 times as fast.
EXACT_BELOW = 30_000
STALE = 0.25  # share of changed rows from which searching everything exactly is faster than forest and changed rows


class Neighbours:
    """Finds the nearest rows of `vectors` (V, D), a table that may be written between queries.

    metric       "angular": scores are cosines; "dot": scores are dot products; a higher score is nearer
    trees        in the forest: with more of them more neighbours are found, and building takes longer
    search       how many nodes of the forest a query visits: with more, more neighbours are found, and a query takes longer
    threads      build the forest; with more than one, which neighbours are missed may differ from run to run
    exact_below  for tables of fewer rows no forest is built and search is exact; see `measure`

    Nothing is indexed before `build` or `rebuild`: until then the search is exact too. Raises ValueError for another metric
    and for vectors that are no C-contiguous table of float32 or float64.
    """

    def __init__(
        self,
        vectors: Array,
        *,
        metric: str = "angular",
        trees: int = 20,
        search: int = 4000,
        seed: int = 0,
        threads: int = 1,
        exact_below: int = EXACT_BELOW,
    ):
        if metric not in METRICS:
            raise ValueError(f"metric: found {metric!r}, expected one of {', '.join(METRICS)}")
        kind = f"{type(vectors).__name__} {getattr(vectors, 'dtype', '')} {getattr(vectors, 'shape', '')}".rstrip()
        table = isinstance(vectors, np.ndarray) and vectors.ndim == 2 and vectors.dtype in (np.float32, np.float64)
        if not table or not vectors.flags.c_contiguous:
            raise ValueError(
                f"vectors: found {kind}, expected a C-contiguous array (V, D) of float32 or float64; "
                "numpy.ascontiguousarray(vectors, dtype=numpy.float32) makes a copy, which no longer learns"
            )
        self.vectors, self.metric, self.trees, self.search = vectors, metric, trees, search
        self.seed, self.threads, self.exact_below = seed, threads, exact_below
        self._lock = threading.Lock()
        self._index: annoy.AnnoyIndex | None = None
        self._changed = np.ones(len(vectors), np.bool_)  # since the snapshot of the index
        self._changed_next = self._changed  # since the snapshot of the index that is being built, or was last
        self._building: Future[None] = Future()
        self._building.set_result(None)

    def build(self) -> None:
        """Index the rows as they are now; returns once queries use the new index.

        Raises ValueError, naming the row, for a number that is not finite; the old index stays.
        """
        self.rebuild().result()

    def rebuild(self) -> Future[None]:
        """Begin to index the rows as they are now, while the present index is used; wait first for a rebuild that is running.

        The Future's result is None, once queries use the new index. Raises as `build`.
        """
        self._building.exception()
        _refuse("vectors", self.vectors, self.vectors.shape[1])
        self._building = Future()
        if len(self.vectors) < self.exact_below:
            self._building.set_result(None)
            return self._building
        with self._lock:
            self._changed_next = np.zeros(len(self.vectors), np.bool_)
        threading.Thread(target=self._build, args=(self.vectors.copy(), self._building), daemon=True).start()
        return self._building

    def _build(self, snapshot: Array, done: Future[None]) -> None:
        try:
            index = forest(snapshot, self.metric, self.trees, self.seed, self.threads)
            with self._lock:
                self._index, self._changed = index, self._changed_next
            done.set_result(None)
        except BaseException as failure:
            done.set_exception(failure)

    def changed(self, ids: Any = slice(None)) -> None:
        """Tell that the rows with these ids have changed; without ids: all rows."""
        with self._lock:
            self._changed[ids] = True
            self._changed_next[ids] = True

    def query(self, ids: Array, scores: Array, hidden: Array, without: Excluded | None = None) -> None:
        """Write the k nearest rows of each query, nearest first; ids (B, k) int32, scores (B, k), hidden (B, D).

        without: what each query leaves out, see cpu/excluded.py; where fewer than k rows are left the last ids are -1 and
        their scores -inf. As many more are asked of the forest.
        Raises ValueError for queries of another width or that are not finite, for k above V, and for ids or scores that
        have no row for every query.
        """
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)
        _refuse("hidden", hidden, self.vectors.shape[1])
        if ids.ndim != 2 or len(ids) != len(hidden) or scores.shape != ids.shape:
            raise ValueError(
                f"ids, scores: found {ids.shape} and {scores.shape}, expected ({len(hidden)}, k): a row for every query"
            )
        if ids.shape[1] > len(self.vectors):
            raise ValueError(f"k: found {ids.shape[1]}, expected at most {len(self.vectors)}, the number of vectors")
        without = without or excluded.nothing(len(hidden))
        with self._lock:
            index, mask = self._index, self._changed
            changed = np.flatnonzero(mask).astype(np.int32)
        if index is None or changed.size > STALE * len(self.vectors):
            brute_force.search(ids, scores, self.vectors, hidden, self.metric, without=without)
            return
        # Twice as many as wanted: some of them have changed since, and are not where the forest knew them
        most = 2 * ids.shape[1] + 16 + int((without.last - without.first).max(initial=0))
        proposed = _propose(index, hidden, most, self.search, self.threads)
        proposed[mask[proposed]] = -1  # they are searched with the changed rows
        brute_force.search(
            ids, scores, self.vectors, hidden, self.metric, rows=changed, proposed=proposed, without=without
        )
        short = np.flatnonzero((ids < 0).any(axis=1))  # the forest may know of fewer than k
        if short.size:
            more, their = ids[short], scores[short]
            brute_force.search(more, their, self.vectors, hidden[short], self.metric, without=without.of(short))
            ids[short], scores[short] = more, their

    def recall(self, hidden: Array, k: int) -> float:
        """Which share of the k nearest rows of these queries (B, D) `query` finds."""
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)
        found, truth = np.empty((2, len(hidden), k), np.int32)
        scores = np.empty((len(hidden), k), hidden.dtype)
        self.query(found, scores, hidden)
        brute_force.search(truth, scores, self.vectors, hidden, self.metric)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))


def forest(vectors: Array, metric: str, trees: int, seed: int, threads: int) -> annoy.AnnoyIndex:
    """An Annoy index over all rows; it is built outside the interpreter's lock, so other threads go on.

    For dot products every row gets one more number, which makes all rows equally long; a query gets a 0 there. Then the
    nearest by angle is the nearest by dot product (Bachrach et al. 2014, "Speeding Up the Xbox Recommender System").
    Annoy 1.17's own "dot" found 5 % of the 10 nearest words where this finds all, at the same cost.
    """
    squares = np.einsum("vd,vd->v", vectors, vectors, dtype=np.float64)
    more = np.sqrt(squares.max() - squares)[:, None] if metric == "dot" else vectors[:, :0]
    index = annoy.AnnoyIndex(vectors.shape[1] + more.shape[1], "angular")
    index.set_seed(seed % 2**31 + 1)  # Annoy's generator stands still at 0
    for first in range(0, len(vectors), 1024):
        block = np.hstack([vectors[first : first + 1024], more[first : first + 1024]]).tolist()
        for row, vector in enumerate(block, first):
            index.add_item(row, vector)
    index.build(trees, threads)
    return index


class Crossing(NamedTuple):
    """Seconds of a query by the forest and by exact search, and the share of the nearest rows that the forest finds."""

    forest: float
    exact: float
    recall: float


def measure(vectors: Array, hidden: Array, k: int = 10, **settings: Any) -> Crossing:
    """Measure which search is faster for these vectors (V, D) and queries (B, D).

    settings  arguments of Neighbours

    Use the forest (exact_below <= V) where it is faster and its recall is high enough.
    """
    neighbours = Neighbours(vectors, **settings | {"exact_below": 0})
    neighbours.build()
    ids, scores = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), vectors.dtype)
    recall = neighbours.recall(hidden, k)  # which also compiles

    def seconds(find: Callable[..., Any], *arguments: Any) -> float:
        start = time.perf_counter()
        find(ids, scores, *arguments)
        return (time.perf_counter() - start) / len(hidden)

    by_forest = [seconds(neighbours.query, hidden) for _ in range(5)]
    exactly = [seconds(brute_force.search, vectors, hidden, neighbours.metric) for _ in range(5)]
    return Crossing(float(np.median(by_forest)), float(np.median(exactly)), recall)


def _propose(index: Any, hidden: Array, most: int, search: int, threads: int) -> Array:
    """The nearest rows by the forest, (B, most) int32, filled up with -1."""
    proposed = np.full((len(hidden), most), -1, np.int32)
    queries = np.pad(hidden, ((0, 0), (0, index.f - hidden.shape[1])))

    def ask(part: range) -> None:
        for b in part:
            found = index.get_nns_by_vector(queries[b].tolist(), most, search)
            proposed[b, : len(found)] = found

    if len(hidden) < 16 or threads == 1:
        ask(range(len(hidden)))
    else:  # Annoy searches outside the interpreter's lock
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(ask, (range(first, len(hidden), threads) for first in range(threads))))
    return proposed


def _refuse(name: str, rows: Array, width: int) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name}: found {rows.shape}, expected (any, {width})")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name}[{finite.argmin()}]: found NaN or infinity, expected finite numbers")
