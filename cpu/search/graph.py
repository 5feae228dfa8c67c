"""A graph of near rows, by hnswlib, over the rows of a table: a query walks it from row to nearer row.

Malkov and Yashunin 2016, arXiv:1603.09320; https://github.com/nmslib/hnswlib. It is built and asked outside the interpreter's
lock, so other threads go on.
"""

import importlib.util
from typing import Any

import numba
import numpy as np

from cpu.runtime.compiled import Array

LINKS, SEARCH = 16, 100
BUILD_SEARCH = 100  # of building: 200 takes twice as long, and no smaller `effort` reached a recall by it


class Graph:
    """hnswlib's graph over rows (V, D); metric "angular" or "dot".

    links    of a row to near rows (hnswlib's M): with more of them more neighbours are found, and building takes longer
    seed     equal seeds give equal graphs
    threads  build it; with more than one, which neighbours are missed may differ from run to run

    Dot products are hnswlib's "ip". The longer vectors by which a forest turns them into angles are no help to a graph: on
    vectors of lengths that differ as those of words do they found 4 % of the 10 nearest where this finds 90 %.

    Raises ValueError where hnswlib is missing.
    """

    def __init__(self, vectors: Array, metric: str, *, links: int = LINKS, seed: int = 0, threads: int = 1):
        check()
        import hnswlib

        self._index: Any = hnswlib.Index("ip" if metric == "dot" else "cosine", vectors.shape[1])
        self._index.init_index(len(vectors), M=links, ef_construction=BUILD_SEARCH, random_seed=seed % 2**31)
        self._index.add_items(vectors, num_threads=threads)

    def propose(self, hidden: Array, most: int, effort: int) -> Array:
        """The nearest rows that a walk which keeps `effort` of them finds, (B, most) int32, filled up with -1."""
        most_found = min(most, self._index.element_count)
        proposed = np.full((len(hidden), most), -1, np.int32)
        self._index.set_ef(max(effort, most_found))
        try:
            found, _ = self._index.knn_query(hidden, most_found, num_threads=numba.get_num_threads())
            proposed[:, :most_found] = found
        except RuntimeError:  # some query reached fewer rows: the graph has parts without a link between them
            pass
        return proposed


def there() -> bool:
    """Whether hnswlib is installed."""
    return importlib.util.find_spec("hnswlib") is not None


def check() -> None:
    """ValueError, which says how to install it, where hnswlib is missing."""
    if not there():
        raise ValueError('index "hnsw": needs hnswlib, which is not installed; pip install "hybrid-engine[neighbours]"')
