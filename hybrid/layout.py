"""Where each unit's weights and signals lie in flat arrays.

A unit is an MLP with one hidden layer: inputs -> hidden -> outputs. Units of a collection may differ in all three sizes, so
every array of a collection is flat along the units, and an offset says where the part of a unit begins.

    weights  [ unit 0: first (h, n) | first bias (h) | second (o, h) | second bias (o) | unit 1: ... ]
    x        (B, X)   one row a batch element; unit u reads   x[:, x_at[u] : x_at[u] + inputs[u]]
    hidden   (B, H)   unit u writes  hidden[:, h_at[u] : h_at[u] + hidden[u]]
    y        (B, Y)   unit u writes       y[:, y_at[u] : y_at[u] + outputs[u]]
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

MOST = 2**31 - 1  # sizes are int32


class UnitLayout(NamedTuple):
    """Sizes (int32) and offsets (int64, in numbers, not bytes) of U units; a namedtuple, so Numba and launchers read it.

    inputs, hidden, outputs  (U,) int32
    w_at, x_at, h_at, y_at   (U + 1,) int64; the last entry is the total
    """

    inputs: np.ndarray
    hidden: np.ndarray
    outputs: np.ndarray
    w_at: np.ndarray
    x_at: np.ndarray
    h_at: np.ndarray
    y_at: np.ndarray


def unit_layout(inputs: ArrayLike, hidden: ArrayLike, outputs: ArrayLike) -> UnitLayout:
    """The layout of as many units as the three lists of sizes, equally long, have entries.

    >>> unit_layout([150], [49], [150]).w_at[-1]
    np.int64(14899)

    Raises ValueError for lists of unequal length, an empty list, sizes below 1 or beyond int32, more than 2^62 weights.
    """
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs}
    arrays = {name: np.asarray(value) for name, value in sizes.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(f"{name}: expected a list of whole numbers, one a unit; found {sizes[name]!r}")
        if array.min() < 1:
            raise ValueError(f"{name}[{array.argmin()}] is {array.min()}; a unit needs at least 1")
        if array.max() > MOST:
            raise ValueError(f"{name}[{array.argmax()}] is {array.max()}; a unit has at most {MOST}")
        if array.size != arrays["inputs"].size:
            raise ValueError(
                f"{name} has {array.size} entries and inputs {arrays['inputs'].size}; one a unit is needed"
            )
    n, h, o = (array.astype(np.int64) for array in arrays.values())
    if (total := float((h * (n + 1.0) + o * (h + 1.0)).sum())) > 2**62:
        raise ValueError(f"{total:.2g} weights; units have at most 2^62 together")
    return UnitLayout(
        *(array.astype(np.int32) for array in (n, h, o)),
        *(_offsets(size) for size in (h * (n + 1) + o * (h + 1), n, h, o)),
    )


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
