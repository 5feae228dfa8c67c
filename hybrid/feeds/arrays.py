"""Examples in memory: ids, contexts, lists, sparse and dense matrices of inputs and targets."""

import functools
import hashlib
from typing import Any, NamedTuple

import numpy as np

from .. import check
from . import Batch, Epochs, Permuted, check_sizes, shuffled_by
from .ragged import Ragged, from_lists, from_sparse


class ArrayFeed(Epochs):
    """A `Feed` of N examples from arrays.

    inputs    integers (N,)             one id per example
              integers (N, k)           k ids per example, whose rows are concatenated: Embedding(per_example=k)
              lists of ids              a bag per example: Embedding(bags="mean")
              scipy sparse (N, rows)    sums of values times rows: Embedding(bags="weighted"); bool: as lists of ids
              numbers (N, width)        input of the trunk: Inputs(width) instead of an embedding
    target    integers (N,); for any number of classes per example, lists of them or the nonzeros of a scipy sparse (N, classes)
    rows      number of ids; None: the largest id plus one, or the columns of the matrix
    classes   number of classes; None: likewise
    weight    (N,) numbers of at least 0, the weights of the examples; None: all are 1
    batch     examples per batch; the last one of an epoch may have fewer
    epochs    number of passes over the examples
    seed      each epoch is a permutation of the examples, drawn from (seed, epoch); None: each epoch is in the given order

    Any array-like that NumPy converts is accepted, such as data-frame columns and torch tensors on the CPU. Large arrays are
    not copied and may be memory-mapped; do not write to them. Raises ValueError for malformed arrays, unequal numbers of
    examples, and weights that are negative or not finite; IndexError for an id or a class out of range.
    """

    def __init__(
        self,
        inputs: Any,
        target: Any,
        *,
        rows: int | None = None,
        classes: int | None = None,
        weight: Any = None,
        batch: int = 512,
        epochs: int = 1,
        seed: int | None = 0,
    ):
        self.seed, self.shuffle = shuffled_by(seed)
        check_sizes(self.seed, batch=batch, epochs=epochs)
        for name, size in (("rows", rows), ("classes", classes)):
            if size is not None:
                check.whole(name, size, 1, check.ID)
        self._inputs, self._targets = inputs_of(inputs, rows), _targets_of(target, classes)
        n = len(self._targets)
        if len(self._inputs) != n or not n:
            raise ValueError(f"found {len(self._inputs)} inputs and {n} targets, expected as many of both, and some")
        check.classes(self._targets.classes)
        self._weight = _weights_of(weight, n)
        self.batch = batch
        self.rows, self.classes = self._inputs.rows, self._targets.classes
        self.counts = self._targets.counts
        self.most_ids = self._inputs.most(batch)
        if self._inputs.x is not None:
            self.width = self._inputs.x.shape[1]
        if self._targets.many is not None:
            self.most_targets = self._targets.many.most(batch)
        self._order = Permuted(np.arange(n), self.seed, self.shuffle)
        super().__init__(epochs, -(-n // batch))

    @functools.cached_property
    def sha256(self) -> str:
        """The digest of the inputs, the targets and the weights."""
        return digest(*self._inputs, *self._targets, self._weight)

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        return self._described("arrays", self.sha256, "batch", "epochs", "seed", "shuffle")

    def _cut(self, epoch: int, tick: int) -> Batch:
        rows = self._order.part(epoch, tick, self.batch)
        weight = None if self._weight is None else self._weight[rows]
        ids, bag_at, values, x = self._inputs.take(rows)
        if self._targets.many is None:
            one: Any = self._targets.one
            return Batch(ids, bag_at, np.ascontiguousarray(one[rows], np.int32), weight, values, x)
        many = self._targets.many.take(rows)
        return Batch(ids, bag_at, many.ids, weight, values, x, many.at)


class Inputs(NamedTuple):
    """The inputs of N examples; exactly one of ids, ragged and x is set.

    ids     (N, k) integers: k ids per example
    ragged  N lists of ids, a bag per example
    x       (N, width) numbers
    rows    number of ids; 0 for x
    """

    ids: np.ndarray | None
    ragged: Ragged | None
    x: np.ndarray | None
    rows: int

    def __len__(self) -> int:
        if self.ragged is not None:
            return len(self.ragged.at) - 1
        return len(self.x if self.ids is None else self.ids)  # type: ignore[arg-type]

    def most(self, examples: int) -> int:
        """Returns the maximum number of ids over any `examples` examples."""
        if self.ragged is not None:
            return self.ragged.most(examples)
        return 0 if self.ids is None else examples * self.ids.shape[1]

    def take(self, rows: np.ndarray) -> tuple[np.ndarray | None, ...]:
        """Returns ids, bag_at, values and x of the selected examples, as in `Batch`."""
        if self.ragged is not None:
            some = self.ragged.take(rows)
            return some.ids, some.at, some.values, None
        if self.x is not None:
            return None, None, None, np.ascontiguousarray(self.x[rows], np.float32)
        ids: Any = self.ids
        return np.ascontiguousarray(ids[rows], np.int32).reshape(-1), None, None, None


class _Targets(NamedTuple):
    """The targets of N examples: one class each, (N,) integers, or many, N lists of classes; the other is None."""

    one: np.ndarray | None
    many: Ragged | None
    classes: int

    def __len__(self) -> int:
        return len(self.one) if self.many is None else len(self.many.at) - 1  # type: ignore[arg-type]

    @property
    def counts(self) -> np.ndarray:
        """The count of each class, (classes,) int64."""
        classes = self.one if self.many is None else self.many.ids
        return np.bincount(np.asarray(classes, np.int64), minlength=self.classes)


def inputs_of(given: Any, rows: int | None = None, *, weighted: bool = True) -> Inputs:
    """Returns validated inputs; see `ArrayFeed` for the accepted types and the errors.

    weighted  False: a sparse matrix of any dtype contributes only its nonzero positions
    """
    valued = weighted and getattr(given, "dtype", None) != np.bool_
    ragged, size, array = _lists_or_array("inputs", given, "rows", rows, valued)
    if ragged is not None:
        return Inputs(None, ragged, None, size)
    if array.dtype.kind == "f" and array.ndim == 2:
        if rows is not None:
            raise ValueError(f"rows: found {rows}, expected None: the inputs are numbers, not ids")
        return Inputs(None, None, array, 0)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2) or not array.size:
        raise ValueError(
            f"inputs: found {array.dtype} {array.shape}, expected whole numbers (N,) or (N, k), numbers (N, width), lists of"
            " ids, or a scipy sparse matrix"
        )
    return Inputs(array.reshape(len(array), -1), None, None, _size_of("inputs", array, rows))


def _targets_of(given: Any, classes: int | None) -> _Targets:
    """Returns the validated targets; see `ArrayFeed`."""
    many, size, array = _lists_or_array("target", given, "classes", classes, False)
    if many is not None:
        return _Targets(None, many, size)
    if array.dtype.kind not in "iu" or array.ndim != 1 or not array.size:
        raise ValueError(
            f"target: found {array.dtype} {array.shape}, expected whole numbers (N,), lists of classes, or a scipy"
            " sparse matrix"
        )
    return _Targets(array, None, _size_of("target", array, classes))


def _lists_or_array(
    name: str, given: Any, sizes: str, size: int | None, valued: bool
) -> tuple[Ragged | None, int, np.ndarray]:
    """Returns ragged lists with the number of ids, or an array."""
    none = np.empty(0)
    if hasattr(given, "tocsr") and hasattr(given, "nnz"):
        ragged = from_sparse(name, given, valued=valued)
        if size not in (None, given.shape[1]):
            raise ValueError(f"{sizes}: found {size}, expected {given.shape[1]} as the columns of the matrix, or None")
        return ragged, given.shape[1], none
    if not isinstance(given, list | tuple):
        given = _array(name, given)
    if _is_lists(given):
        ragged = from_lists(name, given, size)
        return ragged, _size_of(name, ragged.ids, size), none
    return None, 0, _array(name, given)


def _weights_of(given: Any, examples: int) -> np.ndarray | None:
    """Returns the example weights, (N,) float32; ValueError unless they are finite and at least 0."""
    if given is None:
        return None
    found = np.asarray(check.unmasked("weight", given))
    if found.shape != (examples,) or found.dtype.kind not in "iuf":
        raise ValueError(f"weight: found {found.dtype} {found.shape}, expected a number for each of {examples}")
    check.finite("weight", found)
    if (found < 0).any():
        at = int((found < 0).argmax())
        raise ValueError(f"weight[{at}]: found {found[at]}, expected a number of at least 0")
    return found.astype(np.float32)


def _is_lists(given: Any) -> bool:
    """True if the argument is a sequence of sequences: a list, a tuple, or an object array from a data-frame column."""
    if isinstance(given, list | tuple):
        return any(np.ndim(part) == 1 or isinstance(part, list | tuple) for part in given[:1])
    if not isinstance(given, np.ndarray) or given.dtype.kind != "O" or given.ndim != 1:
        return False
    return given.size > 0 and np.ndim(given[0]) == 1


def _array(name: str, given: Any) -> np.ndarray:
    if isinstance(given, str | bytes):
        raise ValueError(f"{name}: found {given[:40]!r}, expected an array")
    check.unmasked(name, given)
    try:
        return np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: found {type(given).__name__}, expected an array ({error})") from None


def _size_of(name: str, ids: np.ndarray, limit: int | None) -> int:
    """Returns the number of ids: `limit`, or else the largest id plus one; IndexError for an id out of range."""
    check.ids(name, ids, check.ID if limit is None else limit)
    return limit if limit is not None else int(ids.max()) + 1 if ids.size else 1


def digest(*parts: Any) -> str:
    """Returns the sha256 of arrays, ragged lists, numbers and None, in this order."""
    sha256 = hashlib.sha256()
    for part in parts:
        if isinstance(part, Ragged):
            sha256.update(digest(*part).encode())
        elif isinstance(part, np.ndarray):
            sha256.update(f"{part.dtype.str} {part.shape} ".encode())
            sha256.update(np.ascontiguousarray(part).data)
        else:
            sha256.update(f"{part} ".encode())
    return sha256.hexdigest()
