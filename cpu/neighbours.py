"""The nearest rows of a table that goes on learning: an Annoy forest, and exact search where that is faster.

An Annoy index never changes once built. So a rebuild runs in a thread of its own, over a snapshot, while the old index
answers; then it takes the old one's place. Rows that have changed since an index's snapshot are searched exactly, and
what the forest proposes is scored against the live table: scores are always true, only a neighbour can be missed.
Annoy checks neither widths nor numbers that are not finite: both are refused here.

Annoy: Bernhardsson 2013, https://github.com/spotify/annoy.
"""

import threading
import time
from concurrent.futures import Future
from typing import NamedTuple

import annoy
import numba
import numpy as np

from cpu import top
from cpu.blas import gemm

METRICS = ("angular", "dot")  # the score is the cosine or the dot product: higher is nearer
EXACT_BELOW = 50_000
STALE = 0.25  # share of changed rows from which searching everything exactly is faster than forest and changed rows
CHUNK, SHARDS, QUERIES = 256, 16, 256  # rows scored together; parts of the table; queries a pass


class Neighbours:
    """The nearest rows of `vectors` (V, D) float32, a live table that others may write between queries.

    metric   "angular": by cosine; "dot": by dot product
    trees    of the forest: more find more, and take longer to build
    search   nodes of the forest looked at for a query: more find more, and take longer
    threads  that build the forest; with more than one, which neighbours are missed may differ from run to run

    With fewer than EXACT_BELOW rows nothing is built and the search is exact. See `measure` for your own vectors.
    """

    def __init__(self, vectors, *, metric="angular", trees=20, search=4000, seed=0, threads=1, exact_below=EXACT_BELOW):
        self.vectors, self.metric, self.trees, self.search = vectors, metric, trees, search
        self.seed, self.threads, self.exact_below = seed, threads, exact_below
        self._lock = threading.Lock()
        self._index: annoy.AnnoyIndex | None = None
        self._changed = np.ones(len(vectors), np.bool_)  # since the snapshot of the index
        self._changed_next: np.ndarray | None = None  # since the snapshot of the index that is being built
        self._building: Future = Future()
        self._building.set_result(None)

    def build(self) -> None:
        """Index the rows as they are now; returns when queries use the new index.

        Raises ValueError, naming the row, for a number that is not finite; the old index stays.
        """
        self.rebuild().result()

    def rebuild(self) -> Future:
        """Begin to index the rows as they are now, beside the index in use; a rebuild under way is waited for first.

        The result of the Future is None, once queries use the new index. Raises as `build`.
        """
        self._building.exception()
        finite = np.isfinite(self.vectors).all(axis=1)
        if not finite.all():
            raise ValueError(f"vectors[{finite.argmin()}]: found NaN or infinity, expected finite numbers")
        self._building = Future()
        if len(self.vectors) < self.exact_below:
            self._building.set_result(None)
            return self._building
        with self._lock:
            self._changed_next = np.zeros(len(self.vectors), np.bool_)
        threading.Thread(target=self._build, args=(self.vectors.copy(), self._building), daemon=True).start()
        return self._building

    def _build(self, snapshot, done):
        try:
            index = forest(snapshot, self.metric, self.trees, self.seed, self.threads)
            with self._lock:
                self._index, self._changed, self._changed_next = index, self._changed_next, None
            done.set_result(None)
        except BaseException as failure:
            done.set_exception(failure)

    def changed(self, ids=slice(None)) -> None:
        """Say that rows have changed: these ids, or all."""
        with self._lock:
            self._changed[ids] = True
            if self._changed_next is not None:
                self._changed_next[ids] = True

    def query(self, ids, scores, hidden) -> None:
        """Write the k nearest rows of each query, nearest first; ids and scores (B, k), hidden (B, D)."""
        with self._lock:
            index, changed = self._index, np.flatnonzero(self._changed).astype(np.int32)
        if index is None or changed.size > STALE * len(self.vectors):
            exact(ids, scores, self.vectors, hidden, self.metric)
            return
        candidates = _candidates(index, hidden, ids.shape[1] + CHUNK, self.search)
        _begin(ids, scores)
        if changed.size:
            _scan_all(ids, scores, self.vectors, hidden, self.metric, changed)
        _score(ids, scores, self.vectors, hidden, candidates, changed, self.metric == "angular", numba.get_num_threads())
        # The forest may propose fewer than k
        short = np.flatnonzero((ids < 0).any(axis=1))
        if short.size:
            few_ids, few_scores = ids[short], scores[short]
            exact(few_ids, few_scores, self.vectors, hidden[short], self.metric)
            ids[short], scores[short] = few_ids, few_scores

    def recall(self, hidden, k) -> float:
        """The share of the k truly nearest rows of these queries (B, D) that `query` finds."""
        shape = (len(hidden), k)
        found, truth, scores = np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, hidden.dtype)
        self.query(found, scores, hidden)
        exact(truth, scores, self.vectors, hidden, self.metric)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))
