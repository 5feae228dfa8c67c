"""What users chose, in the forms in which users of scikit-learn have it: users x items, or a list of items for each user."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..feeds.ratings import Histories

EXPECTED = "expected users x items, a list of items for each user, or hybrid.ratings.histories(...)"


def is_matrix(X: Any) -> bool:
    """Whether X is users x items: a sparse matrix, an array of numbers or a data frame. Else it has the items of each user."""
    numbers = getattr(getattr(X, "dtype", None), "kind", "O") in "biufc"
    return hasattr(X, "shape") and (len(X.shape) == 2 or numbers)


def of_matrix(X: Any, items: np.ndarray) -> Histories:
    """Of each row of a CSR array the columns that are not zero, in the order in which they are stored."""
    kept = X.data != 0
    at = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return _histories(X.indices[kept], at, items)


def of_lists(item: np.ndarray, at: np.ndarray, items: np.ndarray, weight: np.ndarray | None = None) -> Histories:
    """Histories of items by name, see `flat`; those that are not among `items`, which rise, are left out.

    weight  one number an item, as Histories have it
    """
    if not len(item):
        return _histories(np.empty(0, np.int32), at, items)
    place = np.minimum(np.searchsorted(items, item), len(items) - 1)
    kept = items[place] == item
    weight = None if weight is None else weight[kept]
    return _histories(place[kept], np.concatenate([[0], np.cumsum(kept)])[at], items)._replace(weight=weight)


def flat(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """All items of all users, one after another, and where those of each user begin, (U + 1,)."""
    if isinstance(X, Histories):
        return np.asarray(X.items)[X.item], X.at
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise ValueError(f"X: found {type(X).__name__}, {EXPECTED}")
    lists = [_listed(row, user) for user, row in enumerate(X)]
    at = np.cumsum([0, *map(len, lists)])
    items = np.array([item for row in lists for item in row])
    if items.ndim != 1 or (items.dtype.kind not in "iuUO" and len(items)):
        raise ValueError(f"X: found items of {items.dtype} {items.shape}, expected names or whole numbers; {EXPECTED}")
    return items, at


def _listed(row: Any, user: int) -> list[Any]:
    if isinstance(row, str | bytes) or not isinstance(row, Iterable):
        raise ValueError(f"X[{user}]: found {row!r}, {EXPECTED}")
    return list(row)


def _histories(item: np.ndarray, at: np.ndarray, items: np.ndarray) -> Histories:
    users: Any = range(len(at) - 1)  # they have no names
    return Histories(item.astype(np.int32), at.astype(np.int64), users, items)  # type: ignore[arg-type]
