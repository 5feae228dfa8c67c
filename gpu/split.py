"""The top of a tree as dense products: nodes (K, D), near the root, which nearly every example visits. See `Split`.

cuBLAS does the products, split.cu the rest. Per example and node, 20 bytes besides 6 D operations. Scores are written and
partly read; errors are cleared, partly written, and read twice.
"""

from typing import Any, NamedTuple

from numpy.typing import DTypeLike

from gpu import batch_rows, device
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array


class Work(NamedTuple):
    """Scratch of up to B rows.

    scores  (B, K)  hidden . node
    misses  (B, K)  turn - logistic(score) at the nodes of an example's path, else 0
    """

    scores: Array
    misses: Array


def workspace(batch: int, width: int, top: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls of `step` with up to `batch` rows of `width` numbers and `top` nodes."""
    blas.ready()
    empty = device.current().device.empty
    return Work(empty((batch, top), dtype), empty((batch, top), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Any, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step: adds d loss / d hidden to grad (B, D), writes loss (B,) in nats, updates nodes (K, D).

    tree: the plan of a tree's top, see `plan` in gpu/tree_softmax.py. All examples use the nodes before the step; a node is
    updated once, with the gradient summed over its examples. weight (B,): multiplies an example's loss and gradients.
    """
    B, K = len(hidden), len(learned.rows)
    scores, misses = work.scores[:B], work.misses[:B]
    blas.gemm(scores, hidden, learned.rows, b_transposed=True)
    device.fill_bytes(misses, 0)
    paths = scores, learned.biases, tree.leaf_up, tree.node_up, target, weight
    kernels.launch(__file__, "judge", "PPPPPPPPii", -(-B // 64), 64, misses, loss, *paths, B, K)
    blas.gemm(grad, misses, learned.rows, alpha=-1, beta=1)
    batch_rows.move(learned, misses, hidden, rate, downhill=True)
