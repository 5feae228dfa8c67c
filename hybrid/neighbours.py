"""The nearest of your own vectors: by an index that is chosen by measurement, or exactly."""

from concurrent.futures import Future
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import check, console
from .schedule.guards import Alone

if TYPE_CHECKING:  # Numba is imported with the first use
    from scipy.sparse import csr_array

ASKED = 256  # queries of a measurement


class Found(NamedTuple):
    """What an index is worth: the share of the k nearest that it finds, queries a second, and those of exact search."""

    k: int
    recall: float
    rate: float
    exact_rate: float

    def line(self) -> str:
        """As a sentence."""
        return f"recall@{self.k} {self.recall:.2f}, {self.rate:,.0f} queries/s against {self.exact_rate:,.0f} exactly"


class Neighbours:
    """Finds the nearest rows of vectors (V, D), float32 or float64; they may be written between queries, see `changed`.

    metric     "angular": scores are cosines; "dot": dot products; a higher score is nearer
    index      "annoy": a forest of trees; "hnsw", "voyager", "usearch": a graph of near rows; "faiss": cells around centres;
               "exact": all rows are scored; "auto": what is installed of these is tried on these vectors, with several sizes
               and efforts, and what reaches the recall in the least time is taken, exact search where nothing is faster. What
               was chosen, and among what, is said on stderr and kept as `choice`. Each is an extra: pip install
               "hybrid-engine[voyager]", [usearch], [faiss], [annoy], [neighbours] (hnswlib). Without annoy "annoy" is "exact",
               as is said
    recall     auto: the share of the k nearest that is to be found; None: 0.95
    k          auto: how many nearest
    queries    auto: (B, D), such as will be asked, half of them to choose by and half to measure the choice; None: some of the
               rows, with noise
    threads    build the index. With more than one, which neighbours are missed may differ from run to run
    settings   trees and search of "annoy", links and effort of graphs, effort of "faiss", exact_below, seed: see
               cpu/search/neighbours.py

    The index is built at once. One of "auto" depends on measured times, too, and so does which neighbours are missed.

    Raises ValueError for another metric or index, for vectors that are no C-contiguous table of finite floats, for queries of
    another width, for a recall or queries that another index than "auto" would ignore, and where a library is missing.
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
        self._begin(
            vectors, metric=metric, index=index, recall=recall, k=k, queries=queries, threads=threads, **settings
        )
        self.build()

    def _begin(
        self,
        vectors: np.ndarray,
        *,
        index: str = "auto",
        k: int = 10,
        queries: Any = None,
        threads: int = 1,
        **settings: Any,
    ) -> None:
        """All but an index."""
        check.whole("k", k, 1)
        check.whole("threads", threads, 1)
        if queries is not None and index != "auto":
            raise ValueError(
                f'queries: found some with index "{index}", expected none: only index "auto" measures on them'
            )
        self._live = live(vectors, index=index, k=k, threads=threads, **settings)
        self._queries = queries
        self.alone = Alone("table of neighbours", "give every thread one of its own")

    @classmethod
    def load(cls, path: str | PathLike[str], vectors: np.ndarray, **arguments: Any) -> "Neighbours":
        """The index that `save` wrote of these vectors, in place of building one.

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
        """The rows (V, D), those that were given."""
        found: np.ndarray = self._live.vectors
        return found

    @property
    def choice(self) -> Any:
        """Of "auto": kind, size, effort, k, recall, seconds and exact_seconds, see cpu/search/index.py; else None."""
        return self._live.choice

    def query(self, hidden: np.ndarray, k: int = 10, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query (B, D): ids (B, k) int32 and their scores (B, k), nearest first.

        exclude  scipy.sparse CSR (B, V): query b leaves out the rows with a stored entry. Where fewer than k are left, ids
                 ends with -1 and scores with -inf

        Raises ValueError for k outside 1 to V, for queries of another width or that are not finite, for another `exclude`.
        """
        hidden = np.asarray(hidden)
        check.whole("k", k, 1, len(self))
        ids, scores = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), self.vectors.dtype)
        without = None if exclude is None else check.excluded(exclude, len(hidden), len(self))
        with self.alone:
            self._live.query(ids, scores, hidden, without)
        return ids, scores

    def neighbours(self, hidden: np.ndarray, k: int = 10, exclude: Any = None) -> "csr_array":
        """As `query`: scipy.sparse CSR (B, V) of the scores, in each row nearest first."""
        return csr(*self.query(hidden, k, exclude), len(self))

    def changed(self, ids: Any = slice(None)) -> None:
        """Tell that rows with these ids were written (without ids: all): they are searched exactly until the next build."""
        self._live.changed(ids if isinstance(ids, slice) else check.indices("ids", ids, len(self)))

    def build(self) -> None:
        """Index the rows as they are now. Raises ValueError, naming the row, for a number that is not finite."""
        before = self.choice
        self._live.build(self._queries)
        tell_choice(before, self.choice)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to `path`, a file of its library, and `path`.json; `Neighbours.load(path, vectors)` reads it.

        The vectors are not kept. Raises ValueError where exact search is used, or vectors have changed since the last build.
        """
        with self.alone:
            self._live.save(fspath(path))

    def rebuild(self) -> Future[None]:
        """As `build`, beside the index in use; done once the new one answers."""
        begun: Future[None] = self._live.rebuild(self._queries)
        return begun

    def figures(self, hidden: np.ndarray, k: int = 10) -> Found:
        """What `query` is worth on some queries (B, D): recall and rate, beside exact search."""
        with self.alone:
            return measured(self._live, np.asarray(hidden), k)


def live(vectors: np.ndarray, *, index: str = "annoy", **settings: Any) -> Any:
    """A cpu.search.neighbours.Neighbours. Without annoy one for a forest searches exactly, and says so on stderr."""
    from cpu.search.libraries import there
    from cpu.search.neighbours import Neighbours

    if index != "annoy" or there("annoy"):
        return Neighbours(vectors, index=index, **settings)
    made = Neighbours(vectors, index="exact", **settings)
    if len(vectors) >= made.exact_below:
        console.note(
            'neighbours, index annoy: annoy is not installed, all rows are searched; pip install "hybrid-engine[annoy]"'
        )
    return made


def measured(live: Any, hidden: np.ndarray, k: int) -> Found:
    """The recall and rate of a cpu.search.neighbours.Neighbours on some queries (B, D)."""
    k = min(k, len(live.vectors))
    seconds, exact_seconds, recall = live.measured(hidden[:ASKED], k)
    return Found(k, recall, 1 / seconds, 1 / exact_seconds)


def tell_choice(before: Any, choice: Any) -> None:
    """Say on stderr which index was chosen, where it is another than before."""
    if choice and (before is None or before[:2] != choice[:2]):
        console.note(f"neighbours, index auto: {choice.line()}")


def csr(ids: np.ndarray, scores: np.ndarray, classes: int) -> "csr_array":
    """Scores (B, k) of ids (B, k) as scipy.sparse CSR (B, V), in the order of each row; ids of -1 are none."""
    from scipy.sparse import csr_array

    there = ids >= 0
    at = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return csr_array((scores[there], ids[there], at), (len(ids), classes))
