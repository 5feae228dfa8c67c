"""Tables of vectors, one row per id, as in an embedding. See `Rows` in the contract.

A scatter updates the same row many times (ids are Zipf-distributed). Sorting the ids makes the visits of a row adjacent and
keeps their order (include/scatter.cuh). A row gets the updates of a serial loop; with plain SGD they are bit-identical to the
CPU's.
"""

from typing import Any

import numpy as np

from gpu import device, sort
from gpu.rule import wide
from gpu.runtime import kernels
from gpu.runtime.array import Array

PART = 1 << 18  # ids sorted at a time, which limits scratch to 8 MB; longer lists are split
THREADS, ROWS = 256, 8  # threads per block; rows that a warp gathers


def gather(out: Array, table: Array, ids: Array) -> None:
    """out[n] = table[ids[n]]; out (N, D), ids (N,); of numbers of 4 bytes, also integers."""
    N, D = out.shape
    kernels.launch(
        __file__, "gather", "PPPiii", _warps(-(-N // ROWS)), THREADS, out, table, ids, N, D, _aligned(out, table)
    )


def scatter(learned: Any, ids: Array, grad: Array, rate: float) -> None:
    """Updates learned.rows[ids[n]] with grad[n], in the order of n: each n is a visit."""
    for first in range(0, ids.size, PART):
        part = ids[first : first + PART]
        _move(learned, part, None, None, grad[first : first + PART], rate)


def gather_mean(out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
    """See the contract."""
    B, D = out.shape
    arguments = out, table, bag_at, ids, values, B, D, _aligned(out, table)
    kernels.launch(__file__, "gather_mean", "PPPPPiii", _warps(B), THREADS, *arguments)


def scatter_mean(learned: Any, bag_at: Array, ids: Array, values: Array | None, grad: Array, rate: float) -> None:
    """Reverses gather_mean: updates every row of bag b with grad[b] / size(b), or values[n] * grad[b]."""
    B, most = len(grad), min(ids.size, PART)
    bag, share = device.scratch("bag", most, np.int32), device.scratch("share", most, np.float32)
    scale = 1.0 if _measured(learned) else _scale(learned, rate)
    for first in range(0, ids.size, PART):
        part = ids[first : first + PART]
        labels = bag, share, bag_at, values, scale, first, first + part.size, B
        kernels.launch(__file__, "label", "PPPPfiii", _warps(B), THREADS, *labels)
        _move(learned, part, bag, share, grad, rate)


def _move(learned: Any, ids: Array, bag: Array | None, share: Array | None, grad: Array, rate: float) -> None:
    """Makes up to PART visits, each with its factor: its share of a bag, and its row's step."""
    N, D, table = ids.size, grad.shape[1], learned.rows
    order = sort.by_id(ids, len(table))
    factor = _factors(learned, order, bag, share, grad, rate) if _measured(learned) else share
    arrays = table, learned.squares, *order, bag, factor, grad
    scalars = _scale(learned, rate), rate, N, D, _aligned(table, grad, learned.squares)
    kernel = "scatter_squared" if wide(learned) else "scatter"
    kernels.launch(__file__, kernel, "PPPPPPPffiii", _warps(N), THREADS, *arrays, *scalars)


def _measured(learned: Any) -> bool:
    """True if the size of an update depends on the norm of its gradient: squares are row-wise."""
    return learned.squares is not None and not wide(learned)


def _scale(learned: Any, rate: float) -> float:
    """Returns the factor of a gradient whose norm does not matter; 1 if each number has its own squares."""
    return 1.0 if wide(learned) else -rate


def _factors(learned: Any, order: tuple[Array, Array], bag: Any, share: Any, grad: Array, rate: float) -> Array:
    """Returns the factor of each visit's gradient, (N,); updates the rows' squares."""
    N, D = order[0].size, grad.shape[1]
    norm2, factor = device.scratch("norm2", N, np.float32), device.scratch("factor", N, np.float32)
    values = norm2, factor, bag, share, grad, N, D
    kernels.launch(__file__, "measure", "PPPPPii", _warps(N), THREADS, *values)
    steps = factor, learned.squares, *order, norm2, rate, N, D
    kernels.launch(__file__, "steps", "PPPPPfii", _warps(N), THREADS, *steps)
    return factor


def _aligned(*arrays: Array | None) -> bool:
    """True if all rows are aligned to 16 bytes."""
    given = [array for array in arrays if array is not None and array.ndim == 2]
    return all(array.shape[1] % 4 == 0 and array.pointer % 16 == 0 for array in given)


def _warps(count: int) -> int:
    """Returns the number of blocks of THREADS for this many warps."""
    return -(-count // (THREADS // 32))
