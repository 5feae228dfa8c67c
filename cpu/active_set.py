"""The classes that a batch is likely to confuse: what an index over the weights finds near its hidden vectors.

As negatives for sure (cpu/draws.py) they take most of the sum of exponentials of a softmax, and what is drawn beside them only
estimates the rest: so the estimate varies less. It is right whatever is found, since the draws know nothing of it: an index may
be old and miss neighbours. So it is of a copy of the weights, taken every so many steps, and is never told what has moved.

The targets of the batch are not added. Each row has its own target anyway; as negatives for sure for the other rows they would
say which class is the target, so its logit could not be lowered as those of the others, and with few negatives it learned less.

Spring and Shrivastava 2017, "A New Unbiased and Efficient Class of LSH-Based Samplers and Estimators for Partition Function
Computation in Log-Linear Models", arXiv:1703.05160; SLIDE: Chen et al. 2020, arXiv:1903.03129.
"""

from typing import Any

import numpy as np

from cpu.array import Array
from cpu.neighbours import EXACT_BELOW, Neighbours

ASKED = 32  # rows of a batch that the index is asked about
TREES, SEARCH = 10, 1000  # of a forest, see cpu/neighbours.py


class ActiveSet:
    """Finds up to `most` classes a batch by an index over `indexed` (V, D), once that holds weights.

    weights      (V, D) float32, live
    indexed      (V, D) float32, the weights as `renew` found them last; all 0 before. It is all there is to keep: the index
                 is built of it when it is next asked
    most         classes found for a batch
    exact_below  for fewer classes the index is exact search
    """

    def __init__(self, weights: Array, *, most: int, seed: int = 0, exact_below: int = EXACT_BELOW):
        self.weights, self.indexed, self.most = weights, np.zeros(weights.shape, np.float32), most
        self.seed, self.exact_below = seed, exact_below
        self._holds = False
        self._index: Neighbours | None = None

    def renew(self) -> None:
        """Copy the weights; the next batch is told by them."""
        np.copyto(self.indexed, self.weights)
        self.filled()

    def filled(self) -> None:
        """The copy holds other numbers."""
        self._holds, self._index = bool(self.indexed.any()), None

    def of(self, hidden: Array) -> Array:
        """Distinct classes (A,) int32, rising, that are near some rows of hidden (B, D): up to `most`, none before `renew`.

        Raises ValueError for a copy with numbers that are not finite.
        """
        if not self._holds or not self.most or not len(hidden):
            return np.empty(0, np.int32)
        asked = hidden[:: -(-len(hidden) // ASKED)]
        each = min(-(-self.most // len(asked)), len(self.weights))
        asked = asked[: self.most // each]
        ids, scores = np.empty((len(asked), each), np.int32), np.empty((len(asked), each), np.float32)
        self._built().query(ids, scores, asked)
        return np.unique(ids)

    def _built(self) -> Neighbours:
        """The index."""
        if self._index is None:
            settings: dict[str, Any] = {
                "metric": "dot",
                "index": "annoy",
                "trees": TREES,
                "search": SEARCH,
                "threads": 1,
            }
            index = Neighbours(self.indexed, seed=self.seed, exact_below=self.exact_below, **settings)
            index.build()
            self._index = index
        return self._index
