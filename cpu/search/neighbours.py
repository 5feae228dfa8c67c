"""The nearest rows of a table in training: an index rebuilt in the background while it answers queries, or exact search.

An index never changes once it is built. So a rebuild runs in its own thread on a snapshot of the table while the old index
answers queries; then the new index replaces it. Rows changed since the snapshot are searched exactly, and proposals are scored
against the present table. So scores are always right, but a neighbour may be missed. Widths and finiteness are validated here,
since the libraries validate neither.
"""

import contextlib
import hashlib
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

FORMAT = 2  # version of a saved index's metadata
METRICS = ("angular", "dot")
RECALL = 0.95
# Measured on word vectors of width 128 (CBOW on WikiText-2, 28,911 rows), k = 10, 2 threads, default settings, recall 0.975:
# 256 queries in one call take 211 us each by forest and 171 us exactly, one query alone 313 us and 827 us. At 100,000 rows (the
# same with noise) the forest is 2 and 4 times as fast.
EXACT_BELOW = 30_000
TRIED_FROM = 1000  # rows from which indexes are measured against exact search
CELL = 64  # rows of a cell
STALE = 0.25  # share of changed rows above which exact search is faster than a forest plus changed rows


class Neighbours:
    """Finds the nearest rows of `vectors` (V, D), a table that may be written between queries.

    metric       "angular": scores are cosines; "dot": scores are dot products; a higher score is nearer
    index        one of KINDS, see cpu/search/libraries.py; "exact": none; "auto": the one measured as the fastest at a recall,
                 see cpu/search/index.py
    trees        in the forest: more of them find more neighbours, and take longer to build
    search       nodes of the forest that a query visits: more find more neighbours, and take longer
    links        per row of a graph, as trees
    effort       candidates that a query keeps in a graph search, as search; "faiss": cells that it searches
    recall, k    auto: the required share of the k nearest, None: RECALL
    threads      of the build; with more than one, the missed neighbours may differ between runs
    exact_below  smaller tables get no index and are searched exactly. None: EXACT_BELOW, or TRIED_FROM for index "auto"

    choice       auto: the choice and its figures; None before

    Until `build` or `rebuild` the search is exact too. The index that "auto" takes depends on measured times, and may differ
    between runs. Raises ValueError for another metric or index, for vectors that are no C-contiguous float32 or float64 table,
    and if the index's library is missing.
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
                "numpy.ascontiguousarray(vectors, dtype=numpy.float32) makes a copy"
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
        self._changed_next = self._changed  # since the snapshot of the index being built, or the last one built
        self._building: Future[None] = Future()
        self._building.set_result(None)

    def build(self, queries: Array | None = None) -> None:
        """Indexes the current rows; returns once queries use the new index. queries: as in `rebuild`.

        Raises ValueError, naming the row, if a number is not finite; the old index stays.
        """
        self.rebuild(queries).result()

    def rebuild(self, queries: Array | None = None) -> Future[None]:
        """Starts indexing the current rows while the present index is used; waits for a running rebuild first.

        queries  auto: (B, D), for measuring the recall; None: some of the rows, with noise

        The Future's result is None, once queries use the new index. Raises like `build`.
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
    def built(self) -> bool:
        """True if an index answers queries: it has been built, and few rows have changed since."""
        with self._lock:
            return self._index is not None and float(self._changed.mean()) <= STALE

    def _build(self, snapshot: Array, queries: Array | None, done: Future[None], threads: int) -> None:
        try:
            numba.set_num_threads(threads)  # a new thread defaults to all threads
            index, effort, choice = self._made(snapshot, queries)
            with self._lock:
                self._index, self._effort, self.choice, self._changed = index, effort, choice, self._changed_next
            done.set_result(None)
        except BaseException as failure:
            done.set_exception(failure)

    def _made(self, snapshot: Array, queries: Array | None) -> tuple[Index | None, int, Choice | None]:
        """Returns an index, the effort of a query, and the choice with its measurements."""
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
        """Writes the library's index file to `path` and its metadata to `path`.json; the rows are not saved.

        Raises ValueError if no index is in use, or rows have changed since it was built.
        """
        with self._lock:
            index, changed, choice, effort = self._index, int(self._changed.sum()), self.choice, self._effort
        if index is None or changed:
            if index:
                raise ValueError(
                    f"index: found {changed} rows that have changed since it was built; call build() first"
                )
            raise ValueError("index: found none, as search is exact; name an index, with exact_below=0 for few vectors")
        kind = choice.kind if choice else self.index
        facts = {"format": FORMAT, "kind": kind, "metric": self.metric, "effort": effort, "of": _print(self.vectors)}
        facts |= {"choice": choice._asdict() if choice else None}
        parts = path + ".part", path + ".json.part"  # files are replaced as a whole, even if the process ends meanwhile
        try:
            index.save(parts[0])
            facts["file"] = _sum(parts[0])
            with open(parts[1], "w", encoding="utf-8") as file:
                json.dump(facts, file)
            os.replace(parts[0], path)
            os.replace(parts[1], path + ".json")
        finally:
            for part in parts:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(part)

    def load(self, path: str) -> None:
        """Loads the index that `save` wrote of these rows, instead of building one.

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
                    "Neighbours(vectors) builds one" if name == "of" else f"expected {' or '.join(map(str, expected))}"
                )
                raise ValueError(f"{path}: found {what}; {remedy}")
        libraries.check(facts["kind"])
        if _sum(path) != facts["file"]:  # a library may crash on such a file
            raise ValueError(f"{path}: found a file changed since it was saved, expected it unchanged; copy it again")
        index = libraries.LIBRARIES[facts["kind"]].form.load(path, self.metric, self.vectors.shape[1])
        choice = facts["choice"] and Choice(**facts["choice"] | {"tried": tuple(facts["choice"]["tried"])})
        with self._beginning:
            self._building.exception()
            with self._lock:
                self._changed = self._changed_next = np.zeros(len(self.vectors), np.bool_)
                self._index, self._effort, self.choice = index, int(facts["effort"]), choice

    def changed(self, ids: Any = slice(None)) -> None:
        """Marks the rows with these ids as changed; without ids: all rows."""
        with self._lock:
            self._changed[ids] = True
            self._changed_next[ids] = True

    def query(self, ids: Array, scores: Array, hidden: Array, without: Excluded | None = None) -> None:
        """Writes the k nearest rows of each query, nearest first; ids (B, k) int32, scores (B, k), hidden (B, D).

        without: each query's excluded rows, see cpu/output/topk.py; as many more are requested from the index. If fewer than k
        rows remain, the last ids are -1 and their scores -inf. Raises ValueError for queries of another width or that are not
        finite.
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
        """Returns the share of the k nearest rows of these queries (B, D) that `query` finds."""
        hidden = np.ascontiguousarray(hidden, self.vectors.dtype)
        ids, scores = indexes.empty(len(hidden), k, hidden.dtype)
        truth = ids.copy()
        self.query(ids, scores, hidden)
        brute_force.search(truth, scores, self.vectors, hidden, self.metric)
        return indexes.recall(truth, ids)

    def measured(self, hidden: Array, k: int) -> tuple[float, float, float]:
        """Returns median seconds of 5 per query, by `query` and by exact search, for queries (B, D); and the recall."""
        recall = self.recall(hidden, k)  # also compiles
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
    """Returns a fingerprint of a table."""
    return f"{vectors.dtype} {vectors.shape[0]} x {vectors.shape[1]} {zlib.crc32(vectors.data):08x}"


def _sum(path: str) -> str:
    """Returns the checksum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse(name: str, rows: Array, width: int) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name}: found {rows.shape}, expected (any, {width})")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name}[{finite.argmin()}]: found NaN or infinity, expected finite numbers")
