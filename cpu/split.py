"""The top of a tree as dense products: nodes (K, D) near the root, which most paths visit. See `Split`.

One product computes the scores of all examples at all K nodes, though a path visits only some of them. The gradients of the
hidden vectors and of the nodes are one product each. That is 6 B K D operations at the speed of a matrix product, and examples
no longer wait for each other at the root.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.output.rule import move_together, pull_biases
from cpu.runtime.compiled import Array, called, launched
from cpu.softmax import chunk, weigh
from cpu.tree.logistic_visit import weighed
from cpu.vectors.activation import ZERO, miss_and_loss
from cpu.vectors.blas import gemm

ROWS = 64  # examples, or nodes, per product; independent of the thread count


class Work(NamedTuple):
    """Scratch of up to B rows.

    scores  (B, K)  hidden . node
    misses  (B, K)  turn - logistic(score) at the nodes of an example's path, else 0
    pulls   (K, D)  the gradient of the nodes, unless they use plain SGD
    bias_pulls (K,) the same for their biases, with the opposite sign
    """

    scores: np.ndarray
    misses: np.ndarray
    pulls: np.ndarray
    bias_pulls: np.ndarray


def workspace(batch: int, width: int, top: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls of `step` with up to `batch` rows of `width` numbers and `top` nodes."""
    scores, misses = np.empty((2, batch, top), dtype)
    return Work(scores, misses, np.empty((top, width), dtype), np.empty(top, dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Any, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step: adds to grad (B, D), writes loss (B,), updates nodes (K, D) once. See the contract.

    tree: the plan of a tree's top, see `split` in cpu/tree/tree.py.
    """
    scratch = work.misses, work.pulls, work.bias_pulls
    paths = tree.leaf_up, tree.node_up, target
    _judge(grad, loss, learned.rows, learned.biases, work.scores, work.misses, *paths, hidden, weight)
    _move(*learned, *scratch, hidden, learned.rows.dtype.type(rate))


@launched(parallel=True)
def _judge(grad, loss, nodes, biases, scores, misses, leaf_up, node_up, target, hidden, weight):
    """Writes misses and loss, adds to grad."""
    batch = hidden.shape[0]
    for part in numba.prange(-(-batch // ROWS)):
        first, last = part * ROWS, min((part + 1) * ROWS, batch)
        chunk(scores[first:last], nodes, biases, 0, nodes.shape[0], hidden[first:last])
        for b in range(first, last):
            misses[b] = 0
            loss[b] = weighed(_climb(misses, scores, leaf_up, node_up, target, b), weight, b)
            weigh(misses[b], weight, b)
        gemm(grad[first:last], misses[first:last], nodes, -1.0, 1.0)


@called(error_model="numpy")
def _climb(misses, scores, leaf_up, node_up, target, b):
    """Writes the errors along an example's path; returns its loss."""
    total = ZERO
    up = leaf_up[target[b]]
    while up >= 0:
        node, turn = up >> 1, up & 1
        misses[b, node], cost = miss_and_loss(scores[b, node], turn)
        total += cost
        up = node_up[node]
    return total


@launched(parallel=True)
def _move(nodes, biases, squares, bias_squares, misses, pulls, bias_pulls, hidden, rate):
    """Updates every node once; errors are minus the loss's gradients in the scores."""
    batch, top = hidden.shape[0], nodes.shape[0]
    for turn in numba.prange(-(-top // ROWS)):
        first, last = turn * ROWS, min((turn + 1) * ROWS, top)
        part = misses[:batch, first:last]
        pull_biases(bias_pulls[first:last], biases, part)
        move_together(
            nodes, biases, squares, bias_squares, first, last, pulls[first:last], bias_pulls[first:last], part.T, hidden,
            -1.0, rate,
        )  # fmt: skip
