"""The size of a head with clusters, and the transfer of its weights to other clusters of the same classes.

A step of a full softmax over V classes takes the time of V rows per example. A head of H classes and K clusters takes the time
of H + K rows. If the target is in a cluster, a step also takes

    tree     the nodes on its path, each as VISIT rows: in a Huffman tree the bits of the class, given its cluster
    softmax  as many rows as the cluster has classes

times the probability, by the counts, that an example leaves the head.

Through its slot and cluster a class v has the log-probability c_v . h + d_v, up to a constant over all classes and higher
orders in h. In a softmax within a cluster, of rows w, c_v = slot + w_v - the mean of w over the cluster, weighted by class
counts. In a tree it is as in cpu/tree/growth.py, plus the slot. d_v is the log-probability by the biases at h = 0.

Conversely, a new slot gets the mean of c over its classes, and a row of a softmax gets its c_v. A node gets the mean of c over
its right side minus that over its left. These means use the same weights, so unchanged clusters keep their state.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cpu import softmax, tree_softmax
from cpu.output.cluster_softmax import Plan
from cpu.runtime.compiled import Array, launched
from cpu.tree import tree
from cpu.tree.growth import along_paths, differences, sides_of
from cpu.tree.tree import Forest

TINY = 1e-300  # a positive number whose logarithm is finite
VISIT = 2.0  # rows of a full softmax per node visit, in time: `visit_cost` measures 1.2 to 1.4 on one thread


def choose(counts: Array, share: float, tails: str, alone: int | None, clusters: int | None) -> tuple[int, int]:
    """Chooses H and K unless given: the largest H whose step takes at most `share` of a full softmax's time.

    If none does, H minimises the time of a step. K is the root of the number of remaining classes, so that there are about as
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
    """Returns the time of a step per example, in rows of a full softmax, (N,) float64.

    counts           (V,), the frequency of each class
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
    """Measures VISIT on this machine with the current thread count; takes about 0.1 s once kernels are compiled."""
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
    """Rows updated by plain SGD, as in the contract."""

    rows: Array
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


def _seconds(work: Callable[[], None]) -> float:
    """Returns the least time of a few calls; the first may compile."""
    taken = []
    for _ in range(8):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


class Known(NamedTuple):
    """The linear model of each class: c (V, D) float32, d (V,) float64; of a class alone, those of its slot."""

    c: np.ndarray
    d: np.ndarray


def of_trees(head: Any, tail: Any, slot: Array, forest: Forest, masses: Array) -> Known:
    """Returns the model of a head with trees; head, tail: Learned; slot (V,); masses (V,) above 0, class frequencies."""
    known = _of_slots(head, slot)
    along_paths(known.c, known.d, tail, forest.tree, masses)
    return known


def into_trees(head: Any, tail: Any, alone: int, known: Known, forest: Forest, masses: Array) -> None:
    """Writes the rows and biases of the clusters' slots, and of the nodes."""
    children, roots = forest.tree.children, forest.roots
    means, sums = np.empty_like(tail.rows), np.empty(len(tail.rows))
    odds = np.empty(len(tail.rows))
    differences(tail.rows, means, children, known.c, sides_of(children, masses))
    _odds(odds, sums, children, known.d)
    single = roots < 0
    for out, classes, nodes in ((head.rows, known.c, means), (head.biases, known.d, sums)):
        if out is not None:
            out[alone:][single], out[alone:][~single] = classes[~roots[single]], nodes[roots[~single]]
    if tail.biases is not None:
        tail.biases[:] = odds


def of_softmaxes(head: Any, tail: Any, slot: Array, plan: Plan, masses: Array) -> Known:
    """Returns the model of a head with softmaxes."""
    known, among = _of_slots(head, slot), plan.cluster[plan.classes]
    clusters = len(plan.begins) - 1
    share = masses[plan.classes] / np.bincount(among, masses[plan.classes], clusters)[among]
    mean = np.zeros((clusters, tail.rows.shape[1]), np.float32)
    np.add.at(mean, among, (share[:, None] * tail.rows).astype(np.float32))
    known.c[plan.classes] += tail.rows - mean[among]
    biases = np.zeros(len(tail.rows)) if tail.biases is None else tail.biases.astype(np.float64)
    known.d[plan.classes] += biases - _log_sums(biases, plan)[among]
    return known


def into_softmaxes(head: Any, tail: Any, alone: int, known: Known, plan: Plan, masses: Array) -> None:
    """Writes the rows and biases of the clusters' slots, and of the classes in clusters."""
    among, clusters = plan.cluster[plan.classes], len(plan.begins) - 1
    share = masses[plan.classes] / np.bincount(among, masses[plan.classes], clusters)[among]
    tail.rows[:] = known.c[plan.classes]
    head.rows[alone:] = 0
    np.add.at(head.rows[alone:], among, (share[:, None] * tail.rows).astype(np.float32))
    if tail.biases is not None:
        tail.biases[:] = known.d[plan.classes]
        head.biases[alone:] = _log_sums(known.d[plan.classes], plan)


def spread(squares: Array | None, visits: Array, now: Array) -> None:
    """Sets the squares of rows visited `now` times to that multiple of an average visit's, in place."""
    if squares is not None and len(squares):
        each = squares.sum(axis=0, dtype=np.float64) / max(visits.sum(), 1e-300)
        squares[:] = np.multiply.outer(now, each)


def visits(forest: Forest, masses: Array) -> Array:
    """Returns the visit frequency of each node, (N,)."""
    return sides_of(forest.tree.children, masses).sum(axis=1)


def _of_slots(head: Any, slot: Array) -> Known:
    biases = np.zeros(len(head.rows)) if head.biases is None else head.biases.astype(np.float64)
    return Known(head.rows[slot], biases[slot])


def _log_sums(values: Array, plan: Plan) -> Array:
    """Returns the log of the sum of exponentials over each cluster."""
    sums: Array = np.logaddexp.reduceat(values, plan.begins[:-1]) if values.size else np.empty(0)
    return sums


@launched()
def _odds(odds, sums, children, d):
    """Writes the nodes' log-odds at h = 0, and the log of the sum of exp(d) below each."""
    for node in range(len(children) - 1, -1, -1):
        left, right = children[node]
        one = sums[left] if left >= 0 else d[~left]
        other = sums[right] if right >= 0 else d[~right]
        odds[node] = other - one
        sums[node] = np.logaddexp(one, other)
