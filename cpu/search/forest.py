"""An Annoy forest over the rows of a table.

Annoy: Bernhardsson 2013, https://github.com/spotify/annoy. It checks neither widths nor that numbers are finite, and a forest
never changes once it is built; it is built and asked outside the interpreter's lock, so other threads go on.
"""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from cpu.runtime.compiled import Array

TREES, SEARCH = 20, 4000
FEW = 16  # queries that are not worth a hand-off to other threads


class Forest:
    """Annoy's trees over rows (V, D); metric "angular" or "dot".

    trees    with more of them more neighbours are found, and building takes longer
    seed     equal seeds give equal forests
    threads  build it; with more than one, which neighbours are missed may differ from run to run

    For dot products every row gets one more number, which makes all rows equally long; a query gets a 0 there. Then the
    nearest by angle is the nearest by dot product (Bachrach et al. 2014, "Speeding Up the Xbox Recommender System").
    Annoy 1.17's own "dot" found 5 % of the 10 nearest words where this finds all, at the same cost.

    Raises ValueError where annoy is missing.
    """

    def __init__(self, vectors: Array, metric: str, *, trees: int = TREES, seed: int = 0, threads: int = 1):
        check()
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
                found = index.get_nns_by_vector(queries[b].tolist(), most, effort)
                proposed[b, : len(found)] = found

        if len(hidden) < FEW or threads == 1:
            ask(range(len(hidden)))
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(ask, (range(first, len(hidden), threads) for first in range(threads))))
        return proposed


def there() -> bool:
    """Whether annoy is installed."""
    return importlib.util.find_spec("annoy") is not None


def check() -> None:
    """ValueError, which says how to install it, where annoy is missing."""
    if not there():
        raise ValueError(
            'index "annoy": needs annoy, which is not installed; pip install "hybrid-engine[annoy]", with a C++ compiler'
        )
