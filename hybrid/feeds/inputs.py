"""What examples are made of, as users have it in memory: ids, contexts, lists, sparse and dense matrices."""

from typing import Any, NamedTuple

import numpy as np

from .. import check
from .ragged import Ragged, from_lists, from_sparse


class Inputs(NamedTuple):
    """The inputs of N examples: one of three.

    ids     (N, k) whole numbers: k ids an example
    ragged  N lists of ids, a bag an example
    x       (N, width) numbers
    rows    how many ids there are; 0 where there is x
    """

    ids: np.ndarray | None
    ragged: Ragged | None
    x: np.ndarray | None
    rows: int

    def __len__(self) -> int:
        if self.ragged is not None:
            return len(self.ragged.at) - 1
        return len(self.x if self.ids is None else self.ids)  # type: ignore[arg-type]


class Targets(NamedTuple):
    """The targets of N examples: one class each, or any number of them.

    one      (N,) whole numbers; None: see many
    many     N lists of classes; None: see one
    classes  how many there are
    """

    one: np.ndarray | None
    many: Ragged | None
    classes: int

    def __len__(self) -> int:
        return len(self.one) if self.many is None else len(self.many.at) - 1  # type: ignore[arg-type]

    @property
    def counts(self) -> np.ndarray:
        """How often each class occurs, (classes,) int64."""
        found = self.one if self.many is None else self.many.ids
        return np.bincount(np.asarray(found, np.int64), minlength=self.classes)


def inputs(given: Any, rows: int | None = None, *, weighted: bool = True) -> Inputs:
    """The inputs of examples; see `hybrid.ArrayFeed`, which says what they may be and what is raised."""
    if _is_sparse(given):
        ragged = from_sparse("inputs", given, valued=weighted)
        return Inputs(None, ragged, None, _size("rows", rows, given.shape[1], "columns of the matrix"))
    found: Any = given if _is_lists(given) else _array("inputs", given)
    if _is_lists(found):
        ragged = from_lists("inputs", found, rows)
        return Inputs(None, ragged, None, _rows("inputs", ragged.ids, rows))
    if found.dtype.kind == "f" and found.ndim == 2:
        if rows is not None:
            raise ValueError(f"rows: found {rows}, expected None: the inputs are numbers, not ids")
        return Inputs(None, None, found, 0)
    if found.dtype.kind not in "iu" or found.ndim not in (1, 2) or not found.size:
        raise ValueError(
            f"inputs: found {found.dtype} {found.shape}, expected whole numbers (N,) or (N, k), numbers (N, width), lists of"
            " ids, or a scipy sparse matrix"
        )
    size = _rows("inputs", found, rows)
    return Inputs(found.reshape(len(found), -1), None, None, size)


def targets(given: Any, classes: int | None = None) -> Targets:
    """The targets of examples; see `hybrid.ArrayFeed`."""
    if _is_sparse(given):
        many = from_sparse("target", given, valued=False)
        return Targets(None, many, _size("classes", classes, given.shape[1], "columns of the matrix"))
    found: Any = given if _is_lists(given) else _array("target", given)
    if _is_lists(found):
        many = from_lists("target", found, classes)
        return Targets(None, many, _rows("target", many.ids, classes))
    if found.dtype.kind not in "iu" or found.ndim != 1 or not found.size:
        raise ValueError(
            f"target: found {found.dtype} {found.shape}, expected whole numbers (N,), lists of classes, or a scipy sparse"
            " matrix"
        )
    return Targets(found, None, _rows("target", found, classes))


def weights(given: Any, examples: int) -> np.ndarray | None:
    """The weights of examples, (N,) float32; ValueError unless they are finite and at least 0."""
    if given is None:
        return None
    found = np.asarray(given)
    if found.shape != (examples,) or found.dtype.kind not in "iuf":
        raise ValueError(
            f"weight: found {found.dtype} {found.shape}, expected a number for each of {examples} examples"
        )
    check.finite("weight", found)
    if (found < 0).any():
        at = int((found < 0).argmax())
        raise ValueError(f"weight[{at}]: found {found[at]}, expected a number of at least 0")
    return found.astype(np.float32)


def _is_sparse(given: Any) -> bool:
    return hasattr(given, "tocsr") and hasattr(given, "nnz")


def _is_lists(given: Any) -> bool:
    """Whether it is a sequence of sequences: a list, a tuple, or an array of such, as a column of a frame becomes one."""
    if isinstance(given, list | tuple):
        return any(np.ndim(part) == 1 or isinstance(part, list | tuple) for part in given[:1])
    if not isinstance(given, np.ndarray) or given.dtype.kind != "O" or given.ndim != 1:
        return False
    return given.size > 0 and np.ndim(given[0]) == 1


def _array(name: str, given: Any) -> np.ndarray:
    if isinstance(given, str | bytes):
        raise ValueError(f"{name}: found {given[:40]!r}, expected an array")
    try:
        return np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: found {type(given).__name__}, expected an array ({error})") from None


def _rows(name: str, ids: np.ndarray, limit: int | None) -> int:
    """How many ids there are: `limit`, else one more than the largest; IndexError where one is out of range."""
    check.ids(name, ids, check.ID if limit is None else limit)
    return limit if limit is not None else int(ids.max()) + 1 if ids.size else 1


def _size(name: str, said: int | None, found: int, where: str) -> int:
    if said not in (None, found):
        raise ValueError(f"{name}: found {said}, expected {found} as the {where}, or None")
    return found
