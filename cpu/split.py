"""The top of a tree as dense products: nodes (K, D) near the root, which most paths visit. See `Split`.

The scores of all examples at all K nodes are one product, though a path visits only some of them; so are the gradient of the
hidden vectors and that of the nodes. That is 6 B K D operations, but at the speed of a matrix product; and examples no longer
wait for each other at the root.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.activation import ZERO, miss_and_loss
from cpu.array import Array
from cpu.blas import gemm

ROWS = 64  # examples, or nodes, of a product; it does not know of the threads


class Work(NamedTuple):
    """Scratch of up to B rows.

    scores  (B, K)  hidden . node
    misses  (B, K)  turn - logistic(score) at the nodes of an example's path, else 0
    """

    scores: np.ndarray
    misses: np.ndarray


def workspace(batch: int, top: int, dtype: DTypeLike) -> Work:
    """Scratch for calls of `step` with up to `batch` rows and `top` nodes."""
    return Work(*np.empty((2, batch, top), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Any, hidden: Array, target: Array,
    weight: Array | None, rule: Any,
) -> None:  # fmt: skip
    """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move nodes (K, D).

    tree: the plan of a tree's top, see cpu/tree.py's `split`. All examples use the nodes before the step; a node moves
    once, by the sum over its examples.
    """
    nodes = learned.rows
    _judge(grad, loss, nodes, work.scores, work.misses, tree.leaf_up, tree.node_up, hidden, target)
    _move(nodes, work.misses, hidden, nodes.dtype.type(rule.rate))


@numba.njit(parallel=True, cache=True, nogil=True)
def _judge(grad, loss, nodes, scores, misses, leaf_up, node_up, hidden, target):
    """Write misses and loss, add to grad."""
    batch = hidden.shape[0]
    for part in numba.prange(-(-batch // ROWS)):
        first, last = part * ROWS, min((part + 1) * ROWS, batch)
        gemm(scores[first:last], hidden[first:last], nodes.T, 1.0, 0.0)
        for b in range(first, last):
            misses[b] = 0
            loss[b] = _climb(misses, scores, leaf_up, node_up, target, b)
        gemm(grad[first:last], misses[first:last], nodes, -1.0, 1.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _climb(misses, scores, leaf_up, node_up, target, b):
    """Write the misses of an example's path; returns its loss."""
    total = ZERO
    up = leaf_up[target[b]]
    while up >= 0:
        node, turn = up >> 1, up & 1
        misses[b, node], cost = miss_and_loss(scores[b, node], turn)
        total += cost
        up = node_up[node]
    return total


@numba.njit(parallel=True, cache=True, nogil=True)
def _move(nodes, misses, hidden, rate):
    batch, top = hidden.shape[0], nodes.shape[0]
    for part in numba.prange(-(-top // ROWS)):
        first, last = part * ROWS, min((part + 1) * ROWS, top)
        gemm(nodes[first:last], misses[:batch, first:last].T, hidden, rate, 1.0)
