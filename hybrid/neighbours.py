"""Nearest-neighbour search in user vectors, exact or by an index selected by measurement."""

from concurrent.futures import Future
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import check, console
from .schedule.guards import Alone

if TYPE_CHECKING:  # defers the import of Numba to first use
    from scipy.sparse import csr_array

ASKED = 256  # queries of a measurement


class Found(NamedTuple):
    """Measured quality of an index: recall of the k nearest, queries/s, and queries/s of exact search."""

    k: int
    recall: float
    rate: float
    exact_rate: float

    def line(self) -> str:
        """Returns it as one printed line."""
        return f"recall@{self.k} {self.recall:.2f}, {self.rate:,.0f} queries/s against {self.exact_rate:,.0f} exactly"


class Neighbours:
    """Nearest-row search in vectors (V, D), float32 or float64; rows may be modified between queries, see `changed`.

    metric     "angular": cosine scores; "dot": dot products; higher is nearer
    index      "annoy": a forest of trees; "hnsw", "voyager": a graph of near rows; "faiss": cells around centres;
               "exact": all rows are scored. "auto": tries the installed ones on these vectors with several sizes and efforts,
               and selects the fastest that reaches the recall; exact search if none is faster. The choice is printed on
               stderr and kept as `choice`. Each is an extra: pip install "hybrid-engine[voyager]", [faiss], [annoy],
               [hnswlib]. Without annoy, "annoy" falls back to "exact" with a note
    recall     auto: the target fraction of the k nearest; None: 0.95
    k          auto: number of neighbours
    queries    auto: (B, D) sample queries: up to 256 select, the others measure the choice; None: some rows with noise
    threads    build the index. With more than one, the missed neighbours may differ between runs
    settings   trees and search of "annoy", links and effort of graphs, effort of "faiss", exact_below, seed: see
               cpu/search/neighbours.py

    The constructor builds the index. With "auto" the index, and so the missed neighbours, depends on measured times.

    Raises ValueError for an unknown metric or index, a missing library, and vectors that are not a C-contiguous table of
    finite floats. Also for queries of another width, and for recall or queries with an index other than "auto".
    """

    def __init__(
        self,
        vectors: np.ndarray,
        *,
        metric: str = "angular",
        index: str = "auto",
        recall: float | None = None,
        k: int = 10,
        queries: np.ndarray | None = None,
        threads: int = 1,
        **settings: Any,
    ):
        settings |= {"metric": metric, "index": index, "recall": recall, "threads": threads}
        self._begin(vectors, k=k, queries=queries, **settings)
        self.build()

    def _begin(
        self, vectors: Any, *, index: str = "auto", k: int = 10, queries: Any = None, threads: int = 1, **settings: Any
    ) -> None:
        """Initialises everything except the index."""
        if queries is not None and index != "auto":
            raise ValueError(f'queries: found some with index "{index}", expected none: only "auto" measures on them')
        self._live = live(vectors, index=index, **checked({"k": k, "threads": threads} | settings))
        self._queries = queries
        self.alone = Alone("table of neighbours", "give every thread one of its own")

    @classmethod
    def load(cls, path: str | PathLike[str], vectors: np.ndarray, **arguments: Any) -> "Neighbours":
        """Loads an index of these vectors written by `save`, instead of building one.

        arguments  of Neighbours

        Raises ValueError for an index of other vectors, of another kind or metric, and as Neighbours does.
        """
        self = cls.__new__(cls)
        self._begin(vectors, **arguments)
        self._live.load(fspath(path))
        return self

    def __len__(self) -> int:
        return len(self._live.vectors)

    @property
    def vectors(self) -> np.ndarray:
        """The rows (V, D) as passed."""
        return self._live.vectors

    @property
    def choice(self) -> Any:
        """The choice of "auto": kind, size, effort, k, recall, seconds, exact_seconds, see cpu/search/index.py; else None."""
        return self._live.choice

    def query(self, hidden: np.ndarray, k: int = 10, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k nearest rows of each query (B, D): ids (B, k) int32 and scores (B, k), nearest first.

        exclude  scipy.sparse CSR (B, V): query b skips rows with a stored entry; missing ones have the id -1 and score -inf

        Raises ValueError for k outside 1 to V, for queries of another width or not finite, and for an invalid `exclude`.
        """
        hidden = np.asarray(hidden)
        check.whole("k", k, 1, len(self))
        ids, scores = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), self.vectors.dtype)
        without = None if exclude is None else check.excluded(exclude, len(hidden), len(self))
        with self.alone:
            self._live.query(ids, scores, hidden, without)
        return ids, scores

    def neighbours(self, hidden: np.ndarray, k: int = 10, exclude: Any = None) -> "csr_array":
        """Returns the scores of `query` as scipy.sparse CSR (B, V), nearest first in each row."""
        return csr(*self.query(hidden, k, exclude), len(self))

    def changed(self, ids: Any = slice(None)) -> None:
        """Marks rows as modified (default: all): they are searched exactly until the next build."""
        self._live.changed(ids if isinstance(ids, slice) else check.indices("ids", ids, len(self)))

    def build(self) -> None:
        """Builds the index of the current rows. Raises ValueError, with the row, for a number that is not finite."""
        before = self.choice
        self._live.build(self._queries)
        tell_choice(before, self.choice)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the index to `path`, in its library's format, and `path`.json; `Neighbours.load(path, vectors)` reads it.

        The vectors are not saved. Raises ValueError for exact search, or if vectors have changed since the last build.
        """
        with self.alone:
            self._live.save(fspath(path))

    def rebuild(self) -> Future[None]:
        """Builds in the background while the old index serves queries; the future completes when the new one is active."""
        return self._live.rebuild(self._queries)

    def figures(self, hidden: np.ndarray, k: int = 10) -> Found:
        """Measures recall and speed of `query` on queries (B, D), compared with exact search."""
        with self.alone:
            return measured(self._live, np.asarray(hidden), k)


def checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of an index with their whole numbers as ints; ValueError for others."""
    wholes = (name for name in ("trees", "search", "links", "effort", "k", "threads") if name in settings)
    settings |= {name: check.whole(name, settings[name], 1) for name in wholes}
    if settings.get("exact_below") is not None:
        settings["exact_below"] = check.whole("exact_below", settings["exact_below"], 0)
    return settings


def live(vectors: np.ndarray, *, index: str, **settings: Any) -> Any:
    """Returns a cpu.search.neighbours.Neighbours; without annoy, a forest falls back to exact search with a note."""
    from cpu.search.libraries import LIBRARIES, there
    from cpu.search.neighbours import Neighbours

    used = LIBRARIES[index].options if index in LIBRARIES else ()
    for name in settings:
        if name not in used and any(name in library.options for library in LIBRARIES.values()):
            raise ValueError(f'{name}: not used by index "{index}"; leave it out')
    if index != "annoy" or there("annoy"):
        return Neighbours(vectors, index=index, **settings)
    made = Neighbours(vectors, index="exact", **settings)
    if len(vectors) >= made.exact_below:
        console.note('neighbours: annoy is not installed, all rows are searched; pip install "hybrid-engine[annoy]"')
    return made


def measured(live: Any, hidden: np.ndarray, k: int) -> Found:
    """Measures recall and speed of a cpu.search.neighbours.Neighbours on queries (B, D)."""
    if not len(hidden):
        raise ValueError("hidden: found no query, expected at least 1")
    k = min(k, len(live.vectors))
    seconds, exact_seconds, recall = live.measured(hidden[:ASKED], k)
    return Found(k, recall, 1 / seconds, 1 / exact_seconds)


def tell_choice(before: Any, choice: Any) -> None:
    """Prints the selected index on stderr if it changed."""
    if choice and (before is None or before[:2] != choice[:2]):
        console.note(f"neighbours, index auto: {choice.line()}")


def csr(ids: np.ndarray, scores: np.ndarray, classes: int) -> "csr_array":
    """Converts scores (B, k) of ids (B, k) to scipy.sparse CSR (B, V), keeping the order of each row; ids of -1 are dropped."""
    from scipy.sparse import csr_array

    there = ids >= 0
    at = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return csr_array((scores[there], ids[there], at), (len(ids), classes))
