"""Tables of vectors, one row an id, as of an embedding. See `Rows` in the contract.

A scatter moves the same row many times (ids are Zipf-distributed). The threads of the first of equal ids move it for all of
them, in their order (gpu/segments.cuh): so a row gets what a serial loop would do, with plain SGD the same bits as on the CPU.
"""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array
from gpu.rule import plain, scalars, wide

PART = 4096  # ids of one launch, WINDOW in gpu/segments.cuh; longer lists take several launches
THREADS = 256


def gather(out: Array, table: Array, ids: Array) -> None:
    """out[n] = table[ids[n]]; out (N, D), ids (N,)."""
    N, D = out.shape
    kernels.launch(__file__, "gather", "PPPii", _warps(N), THREADS, out, table, ids, N, D)


def scatter(learned: Any, ids: Array, grad: Array, rule: Any) -> None:
    """learned.rows[ids[n]] moves against grad[n], in the order of n, by the rule: each n is a visit."""
    for first in range(0, ids.size, PART):
        part = ids[first : first + PART]
        _move(learned, part, None, None, grad[first : first + PART], rule)


def gather_mean(out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
    """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64.

    values (N,): the sum of values[n] * table[ids[n]] instead.
    """
    B, D = out.shape
    if values is None:
        kernels.launch(__file__, "gather_mean", "PPPPi", B, _columns(D), out, table, bag_at, ids, D)
    else:
        kernels.launch(__file__, "gather_sum", "PPPPPi", B, _columns(D), out, table, bag_at, ids, values, D)


def scatter_mean(learned: Any, bag_at: Array, ids: Array, values: Array | None, grad: Array, rule: Any) -> None:
    """The reverse of gather_mean: every row of bag b moves against grad[b] / size(b), or values[n] * grad[b]."""
    B = len(grad)
    bag, share = device.scratch("bag", PART, np.int32), device.scratch("share", PART, np.float32)
    scale = -rule.rate if plain(learned, rule) else 1.0
    for first in range(0, ids.size, PART):
        part = ids[first : first + PART]
        labels = bag, share, bag_at, values, scale, first, first + part.size, B
        kernels.launch(__file__, "label", "PPPPfiii", _warps(B), THREADS, *labels)
        _move(learned, part, bag, share, grad, rule)


def _move(learned: Any, ids: Array, bag: Array | None, share: Array | None, grad: Array, rule: Any) -> None:
    """Up to PART visits. Plain SGD finds its rate in `share` where there are bags."""
    N, D = ids.size, grad.shape[1]
    name = "scatter" if bag is None else "scatter_mean"
    table = learned.rows
    if not plain(learned, rule):
        norm2 = device.scratch("norm2", PART, np.float32)
        kernels.launch(__file__, "measure", "PPPPii", _warps(N), THREADS, norm2, bag, share, grad, N, D)
        values = table, learned.squares, ids, bag, share, grad, norm2, *scalars(rule), wide(learned), N, D
        kernels.launch(__file__, f"{name}_ruled", "PPPPPPPfffiii", N, _columns(D), *values)
    elif bag is not None:
        kernels.launch(__file__, name, "PPPPPii", N, _columns(D), table, ids, bag, share, grad, N, D)
    else:
        kernels.launch(__file__, name, "PPPfii", N, _columns(D), table, ids, grad, -rule.rate, N, D)


def _warps(count: int) -> int:
    """Blocks of THREADS for a warp a row."""
    return -(-count // (THREADS // 32))


def _columns(width: int) -> int:
    """Threads of a block with a thread a column."""
    return min(-(-width // 32) * 32, THREADS)
