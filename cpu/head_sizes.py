"""How many classes a head has alone, and how many clusters the others make, for a share of a full softmax's time.

A step of a full softmax over V classes takes the time of V rows an example. A head of H classes and K clusters takes that of
H + K rows, and in the example's cluster that of

    tree     the nodes on its path, each as VISIT rows: of a Huffman tree the bits that the class has, given its cluster
    softmax  as many rows as the cluster has classes

times the probability, by the counts, that an example leaves the head.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cpu import softmax, tree, tree_softmax
from cpu.array import Array

TINY = 1e-300  # whose logarithm can be taken
VISIT = 2.0  # rows of a full softmax in the time of a node's visit: `visit_cost` measures it, 1.2 to 1.4 on one thread


def choose(counts: Array, share: float, tails: str, alone: int | None, clusters: int | None) -> tuple[int, int]:
    """H and K: those that are given, and for others the largest H whose step takes at most `share` of a full softmax's time.

    Where none does it is the H whose step takes least. K is the root of how many classes are left, so that there are about as
    many clusters as classes in one.
    """
    classes = counts.size
    heads = np.arange(classes + 1) if alone is None else np.array([alone])
    left = classes - heads
    many = np.sqrt(left).round().astype(np.int64) if clusters is None else np.full(heads.size, clusters)
    fitting = (many <= left) & ((many > 0) | (left == 0))  # without clusters all classes are alone
    heads, many = heads[fitting], np.where(left[fitting], many[fitting], 0)
    rows = cost(counts, heads, many, tails)
    cheap = np.flatnonzero(rows <= share * classes)
    best = cheap[-1] if cheap.size else rows.argmin()
    return int(heads[best]), int(many[best])


def cost(counts: Array, alone: Array, clusters: Array, tails: str) -> Array:
    """What a step takes for an example, in rows of a full softmax, (N,) float64.

    counts           (V,), how often each class is met
    alone, clusters  (N,) whole numbers: H and K; the most frequent classes are alone, and clusters are about equally likely
    """
    met = np.sort(counts if counts.any() else np.ones(counts.size))[::-1]
    p = met / met.sum()
    bits = -p * np.log2(np.maximum(p, TINY))
    away, spread = (np.append(np.cumsum(part[::-1])[::-1], 0)[alone] for part in (p, bits))
    rows = alone + clusters.astype(float)
    many = np.maximum(clusters, 1)
    if tails == "softmax":
        return rows + away * (counts.size - alone) / many
    depth = spread + away * np.log2(np.maximum(away, TINY) / many)
    return rows + VISIT * np.maximum(depth, 0)


def visit_cost(width: int = 128, batch: int = 512, classes: int = 4096) -> float:
    """VISIT as this machine has it, with the threads that are set: about a tenth of a second, once kernels are compiled."""
    rng = np.random.default_rng(0)
    hidden, grad = rng.standard_normal((2, batch, width), np.float32)
    target, loss = rng.integers(0, classes, batch).astype(np.int32), np.empty(batch, np.float32)
    rows, rate, shape = _Learned(np.zeros((classes, width), np.float32)), 1e-3, tree.balanced(classes)
    full, room = (
        softmax.workspace(batch, width, np.float32),
        tree_softmax.workspace(batch, width, shape.depth, np.float32),
    )
    by_row = _seconds(lambda: softmax.step(grad, loss, rows, full, hidden, target, None, rate)) / classes
    given = grad, loss, rows, room, shape, hidden, target, None, rate
    return _seconds(lambda: tree_softmax.step(*given)) / shape.depth / by_row


class _Learned(NamedTuple):
    """Rows that learn by plain SGD, as in the contract."""

    rows: Array
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


def _seconds(work: Callable[[], None]) -> float:
    """The least of a few calls; the first may compile."""
    taken = []
    for _ in range(8):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)
