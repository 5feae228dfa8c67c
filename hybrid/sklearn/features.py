"""Features as an engine takes them: dense numbers, or rows that are summed with the values of a sparse X."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..engine import Embedding
from ..engine.inputs import Inputs
from ..feeds import Batch
from ..feeds.arrays import ArrayFeed

NUMBERS = 2**22  # of features or scores that a question takes at a time


class SparseFeed(ArrayFeed):
    """Examples of a sparse X whose numbers are made dense batch by batch: for an engine with Inputs. Arguments of ArrayFeed."""

    def __init__(self, X: Any, target: Any, **settings: Any):
        super().__init__(X, target, **settings)
        self.width, self.rows, self.most_ids = X.shape[1], 0, 0

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        return super().describe() | {"kind": "sparse"}

    def _cut(self, epoch: int, tick: int) -> Batch:
        batch = super()._cut(epoch, tick)
        x = sparse.csr_array((batch.values, batch.ids, batch.bag_at), (batch.examples, self.width)).toarray()
        return batch._replace(ids=None, bag_at=None, values=None, x=x)


def feed(source: Embedding | Inputs, X: Any, target: Any, **settings: Any) -> ArrayFeed:
    """Examples for an engine that begins with `source`; X dense or CSR, float32; target and settings as of ArrayFeed."""
    if source.dense:
        return (SparseFeed if sparse.issparse(X) else ArrayFeed)(X, target, **settings)
    return ArrayFeed(sparse.csr_array(X), target, **settings)


def questions(source: Embedding | Inputs, X: Any, outputs: int) -> Iterator[tuple[slice, dict[str, Any]]]:
    """Parts of X, each with the arguments of Engine.hidden, .best and .scores for it; outputs: numbers of an answer's row."""
    rows = max(NUMBERS // max(X.shape[1] if source.dense else 1, outputs), 1)
    for first in range(0, X.shape[0], rows):
        part = slice(first, first + rows)
        yield part, _arguments(source, X[part])


def _arguments(source: Embedding | Inputs, X: Any) -> dict[str, Any]:
    if source.dense:
        return {"x": np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float32)}
    entries = sparse.csr_array(X)
    return {"ids": entries.indices, "bag_at": entries.indptr, "values": entries.data.astype(np.float32)}
