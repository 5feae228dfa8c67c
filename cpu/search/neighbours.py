"""The nearest rows of a table that is still being trained: an index that is built anew while it is asked, or exact search.

An index never changes once it is built. So a rebuild runs in a thread of its own, on a snapshot of the table, while
the old index answers queries; then the new index replaces it. Rows that have changed since the snapshot are searched
exactly, and what the index proposes is scored against the present table: scores are always right, but a neighbour may be
missed. Widths, and that numbers are finite, are checked here: libraries of indexes check neither.
"""

import contextlib
import json
import os
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numba
import numpy as np

from cpu.output.topk import Excluded
from cpu.runtime.compiled import Array
from cpu.search import brute_force, libraries
from cpu.search import index as indexes
from cpu.search.index import Choice
from cpu.search.libraries import KINDS, Index

FORMAT = 1  # of what is beside a saved index
METRICS = ("angular", "dot")
RECALL = 0.95
# Measured on word vectors of width 128 (CBOW on WikiText-2, 28,911 rows), k = 10, 2 threads, default settings, recall
# 0.975: 256 queries at once take 211 us each by forest and 171 us exactly, one query alone 313 us and 827 us. At 100,000
# rows (the same with noise) the forest is 2 and 4 times as fast.
EXACT_BELOW = 30_000
TRIED_FROM = 1000  # rows from which it is measured whether an index pays
CELL = 64  # rows of a cell
STALE = 0.25  # share of changed rows from which searching everything exactly is faster than forest and changed rows


class Neighbours:
    """Finds the nearest rows of `vectors` (V, D), a table that may be written between queries.

    metric       "angular": scores are cosines; "dot": scores are dot products; a higher score is nearer
    index        one of KINDS, see cpu/search/libraries.py; "exact": none; "auto": the one that is measured to be the fastest at
                 a recall, see cpu/search/index.py
    trees        in the forest: with more of them more neighbours are found, and building takes longer
    search       how many nodes of the forest a query visits: with more, more neighbours are found, and a query takes longer
    links        of a row of a graph, as trees
    effort       how many rows a query keeps while it walks a graph, as search; "faiss": how many cells it searches
    recall, k    auto: the share of the k nearest that is to be found, None: RECALL
    threads      build the index; with more than one, which neighbours are missed may differ from run to run
    exact_below  for tables of fewer rows no index is built and search is exact. None: EXACT_BELOW, or
                 TRIED_FROM where index is "auto"

    choice       auto: what was chosen, and its figures; None before

    Nothing is indexed before `build` or `rebuild`: until then the search is exact too. Which index "auto" takes depends on
    measured times, and may differ from run to run. Raises ValueError for another metric or index, for vectors that are no
    C-contiguous table of float32 or float64, and where the library of an index is missing.
    """

    def __init__(
        self,
        vectors: Array,
        *,
        metric: str = "angular",
        index: str = "annoy",
        trees: int = 20,
        search: int = 4000,
        links: int = 16,
        effort: int = 100,
        recall: float | None = None,
        k: int = 10,
        seed: int = 0,
        threads: int = 1,
        exact_below: int | None = None,
    ):
        for name, value, expected in (("metric", metric, METRICS), ("index", index, KINDS)):
            if value not in expected:
                raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(expected)}")
        if recall is not None and index != "auto":
            raise ValueError(
                f'recall: found {recall} with index "{index}", expected none: index "auto" alone reaches a recall'
            )
        recall = RECALL if recall is None else recall
        if not 0 < recall <= 1:
            raise ValueError(f"recall: found {recall}, expected a number above 0, at most 1")
        libraries.check(index)
        kind = f"{type(vectors).__name__} {getattr(vectors, 'dtype', '')} {getattr(vectors, 'shape', '')}".rstrip()
        table = isinstance(vectors, np.ndarray) and vectors.ndim == 2 and vectors.dtype in (np.float32, np.float64)
        if not table or not vectors.flags.c_contiguous:
            raise ValueError(
                f"vectors: found {kind}, expected a C-contiguous array (V, D) of float32 or float64; "
                "numpy.ascontiguousarray(vectors, dtype=numpy.float32) makes a copy, which no longer learns"
            )
        self.vectors, self.metric, self.index, self.wanted, self.k = vectors, metric, index, recall, k
        self.size, self._effort = {"annoy": (trees, search), "faiss": (CELL, effort)}.get(index, (links, effort))
        self.seed, self.threads = seed, threads
        few = TRIED_FROM if index == "auto" else EXACT_BELOW
        self.exact_below = few if exact_below is None else exact_below
        self.choice: Choice | None = None
        self._lock, self._beginning = threading.Lock(), threading.Lock()
        self._index: Index | None = None
        self._changed = np.ones(len(vectors), np.bool_)  # since the snapshot of the index
        self._changed_next = self._changed  # since the snapshot of the index that is being built, or was last
        self._building: Future[None] = Future()
        self._building.set_result(None)

    def build(self, queries: Array | None = None) -> None:
        """Index the rows as they are now; returns once queries use the new index. queries: as of `rebuild`.

        Raises ValueError, naming the row, for a number that is not finite; the old index stays.
        """
        self.rebuild(queries).result()

    def rebuild(self, queries: Array | None = None) -> Future[None]:
        """Begin to index the rows as they are now, while the present index is used; wait first for a rebuild that is running.

        queries  auto: (B, D), on which the recall is measured; None: some of the rows, with noise

        The Future's result is None, once queries use the new index. Raises as `build`.
        """
        _refuse("vectors", self.vectors, self.vectors.shape[1])
        if queries is not None:
            queries = np.array(queries, self.vectors.dtype, order="C")
            _refuse("queries", queries, self.vectors.shape[1])
        with self._beginning:
            self._building.exception()
            return self._begun(queries)

    def _begun(self, queries: Array | None) -> Future[None]:
        done: Future[None] = Future()
        self._building = done
        with self._lock:
            self._changed_next = np.zeros(len(self.vectors), np.bool_)
        if self.index == "exact" or len(self.vectors) < self.exact_below:
            done.set_result(None)
            return done
        given = (self.vectors.copy(), queries, done, numba.get_num_threads())
        # no daemon: an exit that did not wait for the libraries' code would crash in it
        threading.Thread(target=self._build, args=given).start()
        return done

    @property
    def building(self) -> bool:
        """Whether a rebuild is running."""
        return not self._building.done()

    @property
    def built(self) -> bool:
        """Whether an index answers: it has been built, and few rows have changed since."""
        with self._lock:
            return self._index is not None and float(self._changed.mean()) <= STALE

    @property
    def moved(self) -> float:
        """The share of the rows that have changed since the last rebuild began; 1 before the first."""
        with self._lock:
            return float(self._changed_next.mean())

    def _build(self, snapshot: Array, queries: Array | None, done: Future[None], threads: int) -> None:
        try:
            numba.set_num_threads(threads)  # a new thread has all
            index, effort, choice = self._made(snapshot, queries)
            with self._lock:
                self._index, self._effort, self.choice, self._changed = index, effort, choice, self._changed_next
            done.set_result(None)
        except BaseException as failure:
            done.set_exception(failure)

    def _made(self, snapshot: Array, queries: Array | None) -> tuple[Index | None, int, Choice | None]:
        """An index, the effort of a query, and what was measured."""
        if self.index != "auto":
            made = libraries.make(self.index, snapshot, self.metric, self.size, self.seed, self.threads)
            return made, self._effort, None
        if queries is None or not len(queries):
            queries = indexes.queries(snapshot, self.seed)
        k = min(self.k, len(snapshot))
        index, choice = indexes.choose(
            snapshot, queries, self.metric, k, self.wanted, self.seed, self.threads, before=self.choice
        )
        return index, choice.effort, choice

    def save(self, path: str) -> None:
        """Write the index to `path`, as its library does, and what it is of beside it, to `path`.json; the rows are not kept.

        Raises ValueError where no index is in use, or rows have changed since it was built.
        """
        with self._lock:
            index, changed, choice, effort = self._index, int(self._changed.sum()), self.choice, self._effort
        if index is None or changed:
            state = (
                f"{changed} rows that have changed since it was built"
                if index
                else "none, so that all rows are searched"
            )
            raise ValueError(
                f"index: found {state}, expected one of the rows as they are; build() makes it so, where one pays"
            )
        kind = choice.kind if choice else self.index
        facts = {"format": FORMAT, "kind": kind, "metric": self.metric, "effort": effort, "of": _print(self.vectors)}
        facts |= {"choice": choice._asdict() if choice else None}
        parts = path + ".part", path + ".json.part"  # what stands at `path` is whole whenever the process ends
        try:
            index.save(parts[0])
            with open(parts[1], "w", encoding="utf-8") as file:
                json.dump(facts, file)
            os.replace(parts[0], path)
            os.replace(parts[1], path + ".json")
        finally:
            for part in parts:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(part)

    def load(self, path: str) -> None:
        """Take the index that `save` wrote of these rows, in place of building one.

        Raises ValueError for one of another kind or metric, or of other rows; the index in use stays.
        """
        with open(path + ".json", encoding="utf-8") as file:
            facts = json.load(file)
        kinds = tuple(libraries.LIBRARIES) if self.index == "auto" else (self.index,)
        for name, found, expected in (
            ("format", facts.get("format"), (FORMAT,)),
            ("kind", facts.get("kind"), kinds),
            ("metric", facts.get("metric"), (self.metric,)),
            ("of", facts.get("of"), (_print(self.vectors),)),
        ):
            if found not in expected:
                what = "an index of other rows" if name == "of" else f"{name} {found!r}"
                remedy = (
                    "build() makes an index of these" if name == "of" else f"expected {' or '.join(map(str, expected))}"
                )
                raise ValueError(f"{path}: found {what}; {remedy}")
        libraries.check(facts["kind"])
        index = libraries.LIBRARIES[facts["kind"]].form.load(path, self.metric, self.vectors.shape[1])
        choice = facts["choice"] and Choice(**facts["choice"] | {"tried": tuple(facts["choice"]["tried"])})
        with self._beginning:
            self._building.exception()
            with self._lock:
                self._changed = self._changed_next = np.zeros(len(self.vectors), np.bool_)
                self._index, self._effort, self.choice = index, int(facts["effort"]), choice

    def changed(self, ids: Any = slice(None)) -> None:
        """Tell that the rows with these ids have changed; without ids: all rows."""
        with self._lock:
            self._changed[ids] = True
            self._changed_next[ids] = True

    def query(self, ids: Array, scores: Array, hidden: Array, without: Excluded | None = None) -> None:
        """Write the k nearest rows of each query, nearest first; ids (B, k) int32, scores (B, k), hidden (B, D).

        without: what each query leaves out, see cpu/output/topk.py; where fewer than k rows are left the last ids are -1 and
        their scores -inf. As many more are asked of the index.
        Raises ValueError for queries of another width or that are not finite.
        """
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)
        _refuse("hidden", hidden, self.vectors.shape[1])
        with self._lock:
            index, changed, effort = self._index, self._changed, self._effort
        if index is None or np.count_nonzero(changed) > STALE * len(self.vectors):
            brute_force.search(ids, scores, self.vectors, hidden, self.metric, without=without)
            return
        indexes.search(ids, scores, self.vectors, hidden, self.metric, index, effort, changed, without)

    def recall(self, hidden: Array, k: int) -> float:
        """Which share of the k nearest rows of these queries (B, D) `query` finds."""
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)
        ids, scores = indexes.empty(len(hidden), k, hidden.dtype)
        truth = ids.copy()
        self.query(ids, scores, hidden)
        brute_force.search(truth, scores, self.vectors, hidden, self.metric)
        return indexes.recall(truth, ids)

    def measured(self, hidden: Array, k: int) -> tuple[float, float, float]:
        """Seconds of a query, and of one by exact search, for these queries (B, D), medians of 5; and the recall."""
        recall = self.recall(hidden, k)  # which also compiles
        ids, scores = indexes.empty(len(hidden), k, self.vectors.dtype)
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)

        def seconds(find: Callable[..., Any], *arguments: Any) -> float:
            start = time.perf_counter()
            find(ids, scores, *arguments)
            return (time.perf_counter() - start) / len(hidden)

        by_index = [seconds(self.query, hidden) for _ in range(5)]
        exactly = [seconds(brute_force.search, self.vectors, hidden, self.metric) for _ in range(5)]
        return float(np.median(by_index)), float(np.median(exactly)), recall


def _print(vectors: Array) -> str:
    """What tells a table from another."""
    return f"{vectors.dtype} {vectors.shape[0]} x {vectors.shape[1]} {zlib.crc32(vectors.data):08x}"


def _refuse(name: str, rows: Array, width: int) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name}: found {rows.shape}, expected (any, {width})")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name}[{finite.argmin()}]: found NaN or infinity, expected finite numbers")
