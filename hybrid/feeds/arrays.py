"""Examples in memory: arrays, lists and sparse matrices of inputs and targets."""

import functools
import hashlib
from typing import Any

import numpy as np

from .. import check
from . import Batch
from .epochs import Epochs
from .inputs import Inputs, Targets, inputs, targets, weights
from .ragged import Ragged


class ArrayFeed(Epochs):
    """N examples from arrays. A `Feed`.

    inputs    whole numbers (N,)        an id an example
              whole numbers (N, k)      k ids an example, whose rows are concatenated: Embedding(per_example=k)
              lists of ids              a bag an example: Embedding(mean=True)
              scipy sparse (N, rows)    sums of values times rows: Embedding(mean=True, weighted=True)
              numbers (N, width)        what the trunk reads: Inputs(width) instead of an embedding
    target    whole numbers (N,); or, for any number of classes an example, lists of them or a scipy sparse matrix (N, classes)
              of which all that is not zero counts
    rows      how many ids there are; None: one more than the largest, or the columns of the matrix
    classes   how many classes there are; None likewise
    weight    (N,) numbers of at least 0, by which examples count; None: all count 1
    weighted  False: of a sparse matrix of inputs only the places count, and an example is the mean of its rows
    batch     examples of a batch; the last one of an epoch may have fewer
    epochs    how often the examples are gone through
    seed      each epoch is a permutation of the examples, drawn from (seed, epoch)
    shuffle   False: each epoch is in the order given

    Whatever NumPy makes an array of will do, such as columns of a frame and torch tensors on the CPU. Large arrays are not
    copied, and may be memory-mapped; do not write to them. Raises ValueError for arrays of another form, for different
    numbers of examples, weights that are negative or not finite; IndexError for an id or a class out of range.
    """

    def __init__(
        self,
        inputs: Any,
        target: Any,
        *,
        rows: int | None = None,
        classes: int | None = None,
        weight: Any = None,
        weighted: bool = True,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ):
        for name, value in (("batch", batch), ("epochs", epochs)):
            check.whole(name, value, 1)
        check.whole("seed", seed, 0)
        for name, size in (("rows", rows), ("classes", classes)):
            if size is not None:
                check.whole(name, size, 1, check.ID)
        self._inputs, self._targets = _examples(inputs, target, rows, classes, weighted)
        self._weight = weights(weight, len(self._targets))
        self.batch, self.seed, self.shuffle = batch, seed, shuffle
        self.rows, self.classes = self._inputs.rows, self._targets.classes
        self.counts = self._targets.counts
        self.most_ids = _most_ids(self._inputs, batch)
        if self._inputs.x is not None:
            self.width = self._inputs.x.shape[1]
        if self._targets.many is not None:
            self.most_targets = self._targets.many.most(batch)
        self._order: tuple[int, np.ndarray] = (-1, np.arange(len(self._targets)))
        super().__init__(epochs, -(-len(self._targets) // batch))

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of the inputs, the targets and the weights."""
        return digest(*self._inputs, *self._targets, self._weight)

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        names = ("batch", "epochs", "seed", "shuffle")
        return {"kind": "arrays", "data": self.sha256} | {name: getattr(self, name) for name in names}

    def _cut(self, epoch: int, tick: int) -> Batch:
        if self.shuffle and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self._targets))
        rows = self._order[1][tick * self.batch : (tick + 1) * self.batch]
        weight = None if self._weight is None else self._weight[rows]
        ids, bag_at, values, x = _taken(self._inputs, rows)
        if self._targets.many is None:
            return Batch(ids, bag_at, _int32(self._targets.one, rows), weight, values, x)
        many = self._targets.many.take(rows)
        return Batch(ids, bag_at, many.ids, weight, values, x, many.at)


def digest(*parts: Any) -> str:
    """sha256 of arrays, ragged lists, numbers and None, in this order."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, Ragged):
            found.update(digest(*part).encode())
        elif isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str} {part.shape} ".encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(f"{part} ".encode())
    return found.hexdigest()


def _examples(given: Any, target: Any, rows: int | None, classes: int | None, weighted: bool) -> tuple[Inputs, Targets]:
    made, wanted = inputs(given, rows, weighted=weighted), targets(target, classes)
    if len(made) != len(wanted) or not len(wanted):
        raise ValueError(f"found {len(made)} inputs and {len(wanted)} targets, expected as many of both, one at least")
    check.classes(wanted.classes)
    return made, wanted


def _most_ids(given: Inputs, batch: int) -> int:
    if given.ragged is not None:
        return given.ragged.most(batch)
    return 0 if given.ids is None else batch * given.ids.shape[1]


def _taken(
    given: Inputs, rows: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """ids, bag_at, values and x of some examples."""
    if given.ragged is not None:
        some = given.ragged.take(rows)
        return some.ids, some.at, some.values, None
    if given.x is not None:
        return None, None, None, np.ascontiguousarray(given.x[rows], np.float32)
    return _int32(given.ids, rows).reshape(-1), None, None, None


def _int32(found: Any, rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(found[rows], np.int32)
