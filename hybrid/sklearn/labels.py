"""Any number of labels an example, in the forms in which users of scikit-learn have them, and back.

"one"    one label each: an array (n,)
"dense"  an indicator: an array (n, V) of 0 and 1
"csr"    the same, sparse
"lists"  the labels of each example by name: a list of lists
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .. import check

EXPECTED = (
    "expected an indicator (n, V) of 0 and 1, dense or sparse, a list of labels for each example, or one label each"
)


class Labels(NamedTuple):
    """The labels of n examples.

    form     "one", "dense", "csr" or "lists"
    entries  (n, V) scipy CSR, an entry for each label
    classes  (V,) their names
    dtype    of an indicator
    """

    form: str
    entries: Any
    classes: np.ndarray
    dtype: Any = np.int64


def read(y: Any, classes: np.ndarray | None = None, *, strange: bool = False) -> Labels:
    """Labels in one of the forms.

    classes  the names that are known; None: all that occur, of an indicator the numbers of its columns
    strange  True: labels that are not among `classes` are left out

    Raises ValueError for another form, and for a label that is not among `classes`.
    """
    if sparse.issparse(y):
        return _indicator("csr", sparse.csr_array(check.sparse("y", y)), classes)
    y = np.asarray(y) if hasattr(y, "__array__") else y
    if _is_lists(y):
        return _named("lists", [_listed(row, at) for at, row in enumerate(y)], classes, strange)
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] > 1:
        return _indicator("dense", found, classes)
    assert_all_finite(found, input_name="y")
    check_classification_targets(found)
    return _named("one", [[label] for label in column_or_1d(found, warn=True)], classes, strange)


def written(labels: Labels, entries: Any) -> Any:
    """Labels that were found, (n, V) scipy CSR with the likeliest of a row first, in the form of others."""
    if labels.form == "one":
        return labels.classes[entries.indices[entries.indptr[:-1]]]
    if labels.form == "lists":
        return [row.tolist() for row in np.split(labels.classes[entries.indices], entries.indptr[1:-1])]
    ones = np.ones(len(entries.indices), labels.dtype)
    made = sparse.csr_array((ones, entries.indices.copy(), entries.indptr), entries.shape)
    made.sort_indices()
    return made if labels.form == "csr" else made.toarray()


def _indicator(form: str, y: Any, classes: np.ndarray | None) -> Labels:
    values = y.data if form == "csr" else y
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError(f"y: found an indicator {y.shape} with values other than 0 and 1, {EXPECTED}")
    if classes is not None and len(classes) != y.shape[1]:
        raise ValueError(f"y: found an indicator {y.shape}, expected {len(classes)} columns, one a label")
    entries = check.csr("y", y, zeros=False)
    return Labels(form, entries, np.arange(y.shape[1]) if classes is None else classes, y.dtype)


def _named(form: str, rows: list[list[Any]], classes: np.ndarray | None, strange: bool) -> Labels:
    at = np.cumsum([0, *map(len, rows)])
    flat = np.array([label for row in rows for label in row])
    known = np.unique(flat) if classes is None else classes
    if not len(flat):
        return Labels(form, sparse.csr_array((len(rows), len(known))), known)
    place = np.minimum(np.searchsorted(known, flat), len(known) - 1)
    new = known[place] != flat
    if new.any() and not strange:
        raise ValueError(f"y: found {flat[new.argmax()]!r}, expected one of {known!r}")
    at = np.concatenate([[0], np.cumsum(~new)])[at]
    entries = sparse.csr_array((np.ones(at[-1]), place[~new], at), (len(rows), len(known)))
    entries.sum_duplicates()
    return Labels(form, entries, known)


def _is_lists(y: Any) -> bool:
    """Whether y has the labels of each example. Rows of equal length of 0 and 1 are an indicator, as in all of scikit-learn."""
    if getattr(y, "ndim", 1) != 1 or isinstance(y, str | bytes) or not len(y):
        return False
    rows = list(y)
    if not all(isinstance(row, Iterable) and not isinstance(row, str | bytes) for row in rows):
        return False
    rows = [list(row) for row in rows]
    width = len(rows[0])
    indicator = width > 1 and all(len(row) == width and all(_is_bit(value) for value in row) for row in rows)
    return not indicator


def _is_bit(value: Any) -> bool:
    return not isinstance(value, str) and value in (0, 1)


def _listed(row: Any, at: int) -> list[Any]:
    labels = list(row)
    if any(isinstance(label, Iterable) and not isinstance(label, str) for label in labels):
        raise ValueError(f"y[{at}]: found {labels!r}, {EXPECTED}")
    return labels
