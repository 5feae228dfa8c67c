"""Tables of vectors, one row an id, as of an embedding. See `Rows` in the contract.

A scatter adds to the same row many times (ids are Zipf-distributed). The threads of the first of equal ids add for all of
them, in their order (gpu/segments.cuh): so a row gets what a serial loop would add, the same bits as on the CPU.
"""

from typing import Any

import numpy as np

from gpu import device, kernels
from gpu.array import Array

PART = 4096  # ids of one launch, WINDOW in gpu/segments.cuh; longer lists take several launches
THREADS = 256


def gather(out: Array, table: Array, ids: Array) -> None:
    """out[n] = table[ids[n]]; out (N, D), ids (N,)."""
    N, D = out.shape
    kernels.launch(__file__, "gather", "PPPii", _warps(N), THREADS, out, table, ids, N, D)


def scatter(learned: Any, ids: Array, grad: Array, rule: Any) -> None:
    """Move row ids[n] against grad[n] (N, D), in the order of n: the same bits in every run."""
    table, scale = learned.rows, -rule.rate
    D = table.shape[1]
    for first in range(0, ids.size, PART):
        part, rows = ids[first : first + PART], grad[first : first + PART]
        values = table, part, rows, scale, part.size, D
        kernels.launch(__file__, "scatter_add", "PPPfii", part.size, _columns(D), *values)


def gather_mean(out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
    """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64."""
    B, D = out.shape
    kernels.launch(__file__, "gather_mean", "PPPPi", B, _columns(D), out, table, bag_at, ids, D)


def scatter_mean(learned: Any, bag_at: Array, ids: Array, values: Array | None, grad: Array, rule: Any) -> None:
    """The reverse of gather_mean: every row of bag b moves against grad[b] / size(b), in the order of b."""
    table, scale = learned.rows, -rule.rate
    B, D = grad.shape
    bag, share = device.scratch("bag", PART, np.int32), device.scratch("share", PART, np.float32)
    for first in range(0, ids.size, PART):
        part = ids[first : first + PART]
        labels = bag, share, bag_at, scale, first, first + part.size, B
        kernels.launch(__file__, "label", "PPPfiii", _warps(B), THREADS, *labels)
        given = table, part, bag, share, grad, part.size, D
        kernels.launch(__file__, "scatter_mean", "PPPPPii", part.size, _columns(D), *given)


def _warps(count: int) -> int:
    """Blocks of THREADS for a warp a row."""
    return -(-count // (THREADS // 32))


def _columns(width: int) -> int:
    """Threads of a block with a thread a column."""
    return min(-(-width // 32) * 32, THREADS)
