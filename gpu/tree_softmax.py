"""Hierarchical softmax: nodes (V - 1, D), one logistic regression at each inner node of a binary tree over V classes.

Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model".
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device
from gpu.rule import wide
from gpu.runtime import kernels
from gpu.runtime.array import Array

WARPS = 4  # warps per block of `learn`, as in gpu/tree_softmax.cu
CHUNKS = (4, 8)  # widths, in warps, for which a node fits the registers
WIDE = "learn_wide"  # the kernel for wider nodes


class Plan(NamedTuple):
    """A tree on the device: leaf_up (V,) and node_up (V - 1,) int32, see cpu/tree/tree.py, nodes on the longest path."""

    leaf_up: Array
    node_up: Array
    depth: int


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes.

    entries  (L, B) int32    2 * node + turn from the root on, -1 past a path's end
    lengths  (B,) int32      nodes on the path
    terms    (B, L, pitch)   the amount that each node of a path subtracts from the gradient; pitch >= D, see `_fit`
    towards  (B, L)          the log-odds of the turn of the path at each node
    """

    entries: Array
    lengths: Array
    terms: Array
    towards: Array


def plan(tree: Any) -> Plan:
    """Copies the tree's pointers to parents to the current queue's device."""
    here = device.current().device
    return Plan(here.from_host(tree.leaf_up), here.from_host(tree.node_up), tree.depth)


def workspace(batch: int, width: int, depth: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes.

    It takes 4 batch (depth (pitch + 2) + 1) bytes: 16 MB for 1024 rows of 128 numbers and paths of 30 nodes.
    """
    empty = device.current().device.empty
    return Work(
        empty((depth, batch), np.int32),
        empty(batch, np.int32),
        empty((batch, depth, _fit(width)[1]), dtype),
        empty((batch, depth), dtype),
    )


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Plan, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """See the contract."""
    B, D = hidden.shape
    depth, pitch = tree.depth, _fit(D)[1]
    paths = work.entries, work.lengths, tree.leaf_up, tree.node_up, target
    kernels.launch(__file__, "climb", "PPPPPii", -(-B // 64), 64, *paths, depth, B)
    _learn(learned, work, hidden, weight, rate, depth)
    sums = grad, loss, work.terms, work.towards, work.lengths, weight
    kernels.launch(__file__, "add", "PPPPPPiii", B, min(-(-D // 32) * 32, 256), *sums, depth, D, pitch)


def _learn(learned: Any, work: Work, hidden: Array, weight: Array | None, rate: float, depth: int) -> None:
    B, D = hidden.shape
    name, pitch = _fit(D)
    grid, block, written = (-(-B // WARPS), depth), 32 * WARPS, (work.terms, work.towards, learned.rows)
    read, sizes = (work.entries, hidden), (depth, B, D, pitch)
    if learned.squares is None and learned.biases is None and weight is None:
        kernels.launch(__file__, name, "PPPPPfiiii", grid, block, *written, *read, rate, *sizes)
    else:
        beside = learned.biases, learned.squares, learned.bias_squares
        values = *written, *beside, *read, weight, rate, wide(learned), *sizes
        kernels.launch(__file__, f"{name}_ruled", "PPPPPPPPPfiiiii", grid, block, *values)


def log_prob(out: Array, learned: Any, tree: Plan, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b]), in nats; its exp sums to 1 over all classes."""
    B, D = hidden.shape
    values = out, learned.rows, learned.biases, tree.leaf_up, tree.node_up, hidden, target
    kernels.launch(__file__, "log_prob", "PPPPPPPii", -(-B // 8), 256, *values, B, D)


def _fit(width: int) -> tuple[str, int]:
    """Returns the kernel for nodes of this width, and the pitch of `terms`, in numbers."""
    for chunks in CHUNKS:
        if width <= 32 * chunks:
            return f"learn_{chunks}", 32 * chunks
    return WIDE, width
