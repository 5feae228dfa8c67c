"""The classes that a question leaves out, as the searches of cpu/ take them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check

if TYPE_CHECKING:
    from cpu.excluded import Excluded


def excluded(exclude: Any, rows: int, classes: int) -> "Excluded":
    """The stored entries of a scipy sparse matrix (rows, classes), whatever their values; it is not written to.

    Raises ValueError as check.sparse does.
    """
    from scipy.sparse import csr_array

    from cpu.excluded import Excluded

    stored = csr_array(check.sparse("exclude", exclude, (rows, classes)))
    ones = np.ones(len(stored.indices), bool)
    entries = check.csr("exclude", csr_array((ones, stored.indices, stored.indptr), stored.shape))
    at = entries.indptr.astype(np.int64)
    return Excluded(at[:-1], at[1:], entries.indices.astype(np.int32, copy=False))
