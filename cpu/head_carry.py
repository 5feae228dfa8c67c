"""What a head with clusters has learned, carried over to other clusters of the same classes.

By its slot and within its cluster a class v has the log-probability c_v . h + d_v, up to what is the same for all classes and
to terms of higher order in h. In a softmax within a cluster, of rows w, c_v = slot + w_v - the mean of w over the cluster,
weighted by how often each class is met. In a tree c_v = slot + the sum of (turn - p) w along the path, where p is how often the
node's right side is met: near there log p(right) is (1 - p) w . h, and log p(left) is -p w . h. And d_v is the log-probability
that biases give at h = 0.

The other way round a new slot gets the mean of c over its classes, a row of a softmax its c_v, and a node the mean of c over
its right side less that over its left. These means are weighted alike, so clusters that stay keep what they learned.
"""

from typing import Any, NamedTuple

import numpy as np

from cpu.array import Array
from cpu.cluster_softmax import Plan
from cpu.cluster_trees import Forest
from cpu.compiled import launched
from cpu.tree_carry import differences, sides_of


class Known(NamedTuple):
    """Of each class: c (V, D) float32, d (V,) float64. Of a class alone they are those of its slot."""

    c: np.ndarray
    d: np.ndarray


def of_trees(head: Any, tail: Any, slot: Array, forest: Forest, masses: Array) -> Known:
    """What a head with trees knows; head, tail: Learned; slot (V,); masses (V,) above 0, how often classes are met."""
    known, tree = _of_slots(head, slot), forest.tree
    sides = sides_of(tree.children, masses)
    share = (sides[:, 1] / np.maximum(sides.sum(axis=1), 1e-300)).astype(np.float32)
    ways, starts = np.zeros_like(tail.rows), np.zeros(len(tail.rows))
    biases = np.zeros(len(tail.rows)) if tail.biases is None else tail.biases.astype(np.float64)
    _down(known.c, known.d, ways, starts, tree.children, tail.rows, biases, share)
    return known


def into_trees(head: Any, tail: Any, alone: int, known: Known, forest: Forest, masses: Array) -> None:
    """Write the rows and biases of the clusters' slots, and of the nodes."""
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
    """What a head with softmaxes knows."""
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
    """Write the rows and biases of the clusters' slots, and of the classes in clusters."""
    among, clusters = plan.cluster[plan.classes], len(plan.begins) - 1
    share = masses[plan.classes] / np.bincount(among, masses[plan.classes], clusters)[among]
    tail.rows[:] = known.c[plan.classes]
    head.rows[alone:] = 0
    np.add.at(head.rows[alone:], among, (share[:, None] * tail.rows).astype(np.float32))
    if tail.biases is not None:
        tail.biases[:] = known.d[plan.classes]
        head.biases[alone:] = _log_sums(known.d[plan.classes], plan)


def spread(squares: Array | None, visits: Array, now: Array) -> None:
    """Squares of rows that are visited `now` as often: of an average visit, times these; in place."""
    if squares is not None and len(squares):
        each = squares.sum(axis=0, dtype=np.float64) / max(visits.sum(), 1e-300)
        squares[:] = np.multiply.outer(now, each)


def visits(forest: Forest, masses: Array) -> Array:
    """How often each node is met, (N,)."""
    return sides_of(forest.tree.children, masses).sum(axis=1)


def _of_slots(head: Any, slot: Array) -> Known:
    biases = np.zeros(len(head.rows)) if head.biases is None else head.biases.astype(np.float64)
    return Known(head.rows[slot], biases[slot])


def _log_sums(values: Array, plan: Plan) -> Array:
    """The logarithm of the sum of exponentials over each cluster."""
    found: Array = np.logaddexp.reduceat(values, plan.begins[:-1]) if values.size else np.empty(0)
    return found


@launched()
def _down(c, d, ways, starts, children, rows, biases, share):
    """Add to each class what the nodes of its path say."""
    for node in range(len(children)):
        for turn in range(2):
            child = children[node, turn]
            toward = biases[node] if turn else -biases[node]
            part = starts[node] - np.logaddexp(0.0, -toward)
            way = ways[node] + (np.float32(turn) - share[node]) * rows[node]
            if child >= 0:
                ways[child], starts[child] = way, part
            else:
                c[~child] += way
                d[~child] += part


@launched()
def _odds(odds, sums, children, d):
    """Write the nodes' log-odds at h = 0, and the log of the sum of exp(d) below each."""
    for node in range(len(children) - 1, -1, -1):
        left, right = children[node]
        one = sums[left] if left >= 0 else d[~left]
        other = sums[right] if right >= 0 else d[~right]
        odds[node] = other - one
        sums[node] = np.logaddexp(one, other)
