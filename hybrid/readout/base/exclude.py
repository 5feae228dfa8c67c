"""The classes that a question leaves out, as the searches of cpu/ take them."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cpu.excluded import Excluded


def excluded(exclude: Any, rows: int, classes: int) -> "Excluded":
    """The stored entries of a scipy CSR array (rows, classes), whatever their values; it is not written to.

    Raises ValueError for anything else, and for indices that point elsewhere.
    """
    from scipy import sparse

    from cpu.excluded import Excluded

    wanted = f"expected a scipy.sparse CSR array ({rows}, {classes}), an entry for each class that a row leaves out"
    if not sparse.issparse(exclude):
        raise ValueError(f"exclude: found {type(exclude).__name__}, {wanted}; scipy.sparse.csr_array(...) makes one")
    if exclude.format != "csr":
        raise ValueError(f"exclude: found the format {exclude.format!r}, {wanted}; its tocsr() makes one")
    if exclude.shape != (rows, classes):
        raise ValueError(f"exclude: found {exclude.shape}, {wanted}")
    try:
        exclude.check_format(full_check=True)
    except ValueError as failure:
        raise ValueError(f"exclude: {failure}; {wanted}") from None
    ones = np.ones(len(exclude.indices), np.int8)
    entries = sparse.csr_array((ones, exclude.indices, exclude.indptr), exclude.shape)
    if not entries.has_canonical_format:
        entries = entries.copy()  # it shares the indices of the caller's
        entries.sum_duplicates()
    at = entries.indptr.astype(np.int64)
    return Excluded(at[:-1], at[1:], entries.indices.astype(np.int32, copy=False))
