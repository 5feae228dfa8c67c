"""Libraries that find near rows without scoring all of them, behind one contract: see Index.

Annoy             a forest: Bernhardsson 2013, https://github.com/spotify/annoy
hnswlib, Voyager  a graph: Malkov and Yashunin 2016, arXiv:1603.09320
FAISS             cells around centres, the nearest of which are searched: Jegou et al. 2011; Douze et al., arXiv:2401.08281

None of them validates widths, or that numbers are finite. They are built and queried without the GIL.
"""

import contextlib
import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np

from cpu.runtime.compiled import Array

FEW = 16  # fewer queries of a forest are not worth a hand-off to threads
BUILD_SEARCH = 100  # effort of building a graph: 200 takes twice as long, with no smaller `effort` for a recall


class Index:
    """A snapshot index over the rows of a table; it proposes rows, and may miss a neighbour."""

    walks = True  # True if it takes longer when more rows are requested

    def __init__(self, index: Any):
        self._index = index

    @classmethod
    def build(cls, vectors: Array, metric: str, size: int, seed: int, threads: int) -> "Index":
        """Builds the index, see `make`."""
        raise NotImplementedError

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Returns near rows of each query (B, D), (B, most) int32, padded with -1. More effort finds more, more slowly."""
        raise NotImplementedError

    def save(self, path: str) -> None:
        """Writes the library's own file."""
        self._index.save(path)

    @classmethod
    def load(cls, path: str, metric: str, width: int) -> "Index":
        """Reads an index over vectors of this width that `save` wrote."""
        raise NotImplementedError


class Forest(Index):
    """Annoy's trees.

    For dot products every row gets one extra number that makes all rows equally long; a query gets a 0 there. Then the nearest
    by angle is the nearest by dot product (Bachrach et al. 2014, "Speeding Up the Xbox Recommender System"). Annoy 1.17's own
    "dot" found 5 % of the 10 nearest words where this finds all, at the same cost.
    """

    walks = False  # a forest has scored more rows than requested

    @classmethod
    def build(cls, vectors: Array, metric: str, size: int, seed: int, threads: int) -> "Forest":
        """Builds `size` trees."""
        import annoy

        squares = np.einsum("vd,vd->v", vectors, vectors, dtype=np.float64)
        more = np.sqrt(squares.max() - squares)[:, None] if metric == "dot" else vectors[:, :0]
        index: Any = annoy.AnnoyIndex(vectors.shape[1] + more.shape[1], "angular")
        index.set_seed(seed % 2**31 + 1)  # Annoy's generator is stuck at 0
        for first in range(0, len(vectors), 1024):
            block = np.hstack([vectors[first : first + 1024], more[first : first + 1024]]).tolist()
            for row, vector in enumerate(block, first):
                index.add_item(row, vector)
        index.build(size, threads)
        return cls(index)

    @classmethod
    def load(cls, path: str, metric: str, width: int) -> "Forest":
        """Maps the file to memory."""
        import annoy

        index: Any = annoy.AnnoyIndex(width + (metric == "dot"), "angular")
        index.load(path)
        return cls(index)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Returns the nearest rows found by visiting `effort` nodes."""
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


class Graph(Index):
    """hnswlib's graph; hnswlib's M is the number of links of a row to near rows.

    Dot products are hnswlib's "ip". Extending the vectors, as a forest does, does not help a graph. On vectors whose lengths
    vary as those of words do, it found 4 % of the 10 nearest where this finds 90 %.
    """

    @classmethod
    def build(cls, vectors: Array, metric: str, size: int, seed: int, threads: int) -> "Graph":
        """Builds a graph with `size` links per row."""
        made = cls._empty(metric, vectors.shape[1])
        made._index.init_index(len(vectors), M=size, ef_construction=BUILD_SEARCH, random_seed=seed % 2**31)
        made._index.add_items(vectors, num_threads=threads)
        return made

    @classmethod
    def _empty(cls, metric: str, width: int) -> "Graph":
        import hnswlib

        return cls(hnswlib.Index("ip" if metric == "dot" else "cosine", width))

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Returns the nearest rows of a graph search that keeps `effort` candidates."""
        reached = min(most, self._index.element_count)
        proposed = np.full((len(hidden), most), -1, np.int32)
        self._index.set_ef(max(effort, reached))
        try:
            near, _ = self._index.knn_query(hidden, reached, num_threads=numba.get_num_threads())
            proposed[:, :reached] = near
        except RuntimeError:  # some query reached fewer rows: the graph is disconnected
            pass
        return proposed

    def save(self, path: str) -> None:
        """Saves the index, see Index."""
        self._index.save_index(path)

    @classmethod
    def load(cls, path: str, metric: str, width: int) -> "Graph":
        """Loads an index, see Index."""
        made = cls._empty(metric, width)
        made._index.load_index(path)
        return made


class VoyagerGraph(Index):
    """Voyager's graph; it reduces dot products to angles by one extra number per vector, as a forest here does."""

    @classmethod
    def build(cls, vectors: Array, metric: str, size: int, seed: int, threads: int) -> "VoyagerGraph":
        """Builds a graph with `size` links per row."""
        import voyager

        space = voyager.Space.InnerProduct if metric == "dot" else voyager.Space.Cosine
        more = {"M": size, "ef_construction": BUILD_SEARCH, "random_seed": seed % 2**31, "max_elements": len(vectors)}
        index = voyager.Index(space, vectors.shape[1], **more)
        index.add_items(vectors.astype(np.float32, copy=False), num_threads=threads)
        return cls(index)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Returns the nearest rows of a graph search that keeps `effort` candidates."""
        import voyager

        reached = min(most, len(self._index))
        proposed, threads = np.full((len(hidden), most), -1, np.int32), numba.get_num_threads()
        queries = hidden.astype(np.float32, copy=False)
        try:
            if len(hidden):
                proposed[:, :reached], _ = self._index.query(queries, reached, threads, max(effort, reached))
        except voyager.RecallError:  # as in hnswlib
            pass
        return proposed

    @classmethod
    def load(cls, path: str, metric: str, width: int) -> "VoyagerGraph":
        """Loads an index, see Index."""
        import voyager

        return cls(voyager.Index.load(path))


class Cells(Index):
    """FAISS's cells of rows around k-means centres (IndexIVFFlat), searched by dot product; angles use unit rows."""

    walks = False

    @classmethod
    def build(cls, vectors: Array, metric: str, size: int, seed: int, threads: int) -> "Cells":
        """Builds cells of about `size` rows."""
        import faiss

        rows = vectors.astype(np.float32)
        if metric == "angular":
            faiss.normalize_L2(rows)
        parts = max(1, len(rows) // size)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], parts, faiss.METRIC_INNER_PRODUCT)
        index.cp.seed, index.cp.min_points_per_centroid = seed % 2**31, 1
        with _faiss_threads(threads):
            index.train(rows)
            index.add(rows)
        return cls(index)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """Returns the nearest rows of the `effort` nearest cells."""
        import faiss

        few = faiss.SearchParametersIVF()
        few.nprobe = min(effort, self._index.nlist)
        with _faiss_threads(numba.get_num_threads()):
            proposed: Array = self._index.search(np.ascontiguousarray(hidden, np.float32), most, params=few)[1]
        return proposed.astype(np.int32)

    def save(self, path: str) -> None:
        """Saves the index, see Index."""
        import faiss

        faiss.write_index(self._index, path)

    @classmethod
    def load(cls, path: str, metric: str, width: int) -> "Cells":
        """Loads an index, see Index."""
        import faiss

        return cls(faiss.read_index(path))


@contextlib.contextmanager
def _faiss_threads(threads: int) -> Iterator[None]:
    """A context that sets FAISS's global thread count, which is OpenMP's."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Library(NamedTuple):
    """The library of a kind of index.

    module   to import, and the extra of this package that installs it
    form     the class of its indexes
    setting  template that describes `size` and `effort`
    options  the arguments of hybrid.Neighbours that set these two
    """

    module: str
    extra: str
    form: type[Index]
    setting: str
    options: tuple[str, ...]


LIBRARIES = {
    "annoy": Library(
        "annoy", '"hybrid-engine[annoy]", with a C++ compiler', Forest, "{} trees, search {:,}", ("trees", "search")
    ),
    "hnsw": Library("hnswlib", '"hybrid-engine[hnswlib]"', Graph, "{} links, effort {:,}", ("links", "effort")),
    "voyager": Library(
        "voyager", '"hybrid-engine[voyager]"', VoyagerGraph, "{} links, effort {:,}", ("links", "effort")
    ),
    "faiss": Library("faiss", '"hybrid-engine[faiss]"', Cells, "cells of {} rows, {:,} searched", ("effort",)),
}
KINDS = (*LIBRARIES, "exact", "auto")


def there(kind: str) -> bool:
    """True if the library of a kind is installed."""
    return importlib.util.find_spec(LIBRARIES[kind].module) is not None


def check(kind: str) -> None:
    """Raises ValueError, with the install command, if the library of a kind is missing."""
    if kind in LIBRARIES and not there(kind):
        library = LIBRARIES[kind]
        raise ValueError(f'index "{kind}": needs {library.module}, which is not installed; pip install {library.extra}')


def make(kind: str, vectors: Array, metric: str, size: int, seed: int, threads: int) -> Index:
    """Builds the index of a kind over all rows (V, D); metric "angular" or "dot".

    size     the trees of a forest, the links of a graph, the rows of a cell: more trees or links, or smaller cells, find more
             neighbours, and take longer to build
    seed     equal seeds give equal indexes
    threads  of the build; with more than one, the missed neighbours may differ between runs
    """
    return LIBRARIES[kind].form.build(vectors, metric, size, seed, threads)
