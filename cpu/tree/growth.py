"""What the nodes of a tree have learned, carried to another tree; and more classes for a tree, beside one leaf.

Where a node's right side is met in the share p of its examples, log p(right) is, near there, (1 - p) w . h + constant, and
log p(left) is -p w . h + constant. So the tree says of class v: log p(v) = c_v . h + constant, c_v the sum of (turn - p) w
along the path to v.
"""

from typing import Any, NamedTuple

import numpy as np

from cpu.runtime.compiled import Array, launched
from cpu.tree import tree as trees
from cpu.tree.tree import Tree


def vectors(learned: Any, tree: Tree, masses: Array) -> Array:
    """c_v of every class, (V, D) float32: alike where the tree treats two classes alike.

    learned  rows (V - 1, D), biases, squares and bias_squares of the nodes, the last three perhaps None
    masses   (V,) above 0: how often each class is met
    """
    classes = np.zeros((masses.size, learned.rows.shape[1]), np.float32)
    along_paths(classes, np.zeros(masses.size), learned, tree, masses)
    return classes


def along_paths(c: Array, d: Array, learned: Any, tree: Tree, masses: Array) -> None:
    """Add c_v to c (V, D) float32, and the log-probability of each class that biases give at h = 0 to d (V,) float64.

    tree  or a forest, see cpu/tree/tree.py
    """
    sides, rows = sides_of(tree.children, masses), learned.rows
    share = (sides[:, 1] / np.maximum(sides.sum(axis=1), 1e-300)).astype(np.float32)
    biases = np.zeros(len(rows)) if learned.biases is None else learned.biases.astype(np.float64)
    _down(c, d, np.zeros_like(rows), np.zeros(len(rows)), tree.children, rows, biases, share)


def kept(learned: Any, tree: Tree, new: Tree) -> tuple[Any, int]:
    """`learned` of the nodes of a tree -> that of the nodes of the new one, in arrays of its own, and how many keep theirs.

    A node that parts the same two sets keeps all its numbers, their signs turned where right is left now. The others are 0:
    made of what the old nodes know of their classes they were surer than they had learned to be, and the model got worse.
    """
    made = type(learned)(*(None if array is None else np.zeros_like(array) for array in learned))
    names = np.random.default_rng(0).integers(0, 2**64, tree.leaf_up.size, np.uint64)
    # A set is known by the sum of its classes' names, modulo 2^64: two different ones agree once in 10^19.
    old_sides, new_sides = sides_of(tree.children, names), sides_of(new.children, names)
    old_keys, new_keys = (np.sort(side, axis=1).view("u8,u8")[:, 0] for side in (old_sides, new_sides))
    _, before, after = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
    sign = np.where(old_sides[before, 0] == new_sides[after, 0], np.float32(1), np.float32(-1))
    made.rows[after] = learned.rows[before] * sign[:, None]
    if made.biases is not None:
        made.biases[after] = learned.biases[before] * sign
    for ours, theirs in ((made.squares, learned.squares), (made.bias_squares, learned.bias_squares)):
        if ours is not None:
            ours[after] = theirs[before]
    return made, before.size


def rows_of(tree: Tree, vectors: Array, masses: Array) -> Array:
    """(V - 1, D): the rows of nodes from which `vectors` finds these vectors (V, D) float32, less their weighted mean.

    A node has the mean over the classes on its right, less that over those on its left; masses (V,) weigh them.
    """
    rows, means = np.empty((2, len(vectors) - 1, vectors.shape[1]), np.float32)
    differences(rows, means, tree.children, vectors, sides_of(tree.children, masses))
    return rows


@launched()
def sides_of(children, values):
    """(N, 2): the sum of the classes' values on the left and on the right of each node; children stand after their parents."""
    sides = np.empty(children.shape, values.dtype)
    for node in range(len(children) - 1, -1, -1):
        for turn in range(2):
            child = children[node, turn]
            sides[node, turn] = sides[child, 0] + sides[child, 1] if child >= 0 else values[~child]
    return sides


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
def differences(rows, means, children, vectors, sides):
    """Write each node's mean over the classes on its right less that on its left, and their mean, weighted by `sides_of`."""
    for node in range(len(children) - 1, -1, -1):
        left, right = children[node]
        low = means[left] if left >= 0 else vectors[~left]
        high = means[right] if right >= 0 else vectors[~right]
        rows[node] = high - low
        means[node] = low + np.float32(sides[node, 1] / (sides[node, 0] + sides[node, 1])) * rows[node]


class Grown(NamedTuple):
    """A tree of V + n classes as pointers to parents, numbered breadth first.

    leaf_up  (V + n,) int32
    node_up  (V + n - 1,) int32
    place    (V - 1,) the numbers that the nodes of the tree of V classes have now
    """

    leaf_up: Array
    node_up: Array
    place: Array


def grown(tree: Tree, counts: Array, more: Array, deepest: int) -> Grown:
    """A tree with n more classes: their Huffman tree stands beside the rarest class that has room, under a new node.

    counts   (V,) how often each class is met
    more     (n,) the same of the new classes, n >= 1
    deepest  nodes on a path that a class with room has afterwards; as many more as needed where no class has room

    Without `deepest` classes that come one by one would stand on one path after another, each below the one before it.
    """
    if more.size == 1:  # a tree of one class has no nodes
        return _hung(tree, _beside(tree, counts, 1, deepest), np.full(1, -1, np.int32), np.empty(0, np.int32))
    new = trees.huffman(more)
    return _hung(tree, _beside(tree, counts, 1 + new.depth, deepest), new.leaf_up, new.node_up)


def _beside(tree: Tree, counts: Array, below: int, deepest: int) -> int:
    """The rarest class whose path may get longer by so many nodes; of equally rare ones the one with the shortest path."""
    lengths = trees.levels(tree.node_up)[tree.leaf_up >> 1] + 1
    free = np.flatnonzero(lengths + below <= max(deepest, lengths.min() + below))
    rare = free[counts[free] == counts[free].min()]
    return int(rare[lengths[rare].argmin()])


def _hung(tree: Tree, leaf: int, leaf_up: Array, node_up: Array) -> Grown:
    """A tree with a new node in the place of a leaf: the leaf on its left, the other tree on its right."""
    before, joint = tree.node_up.size, 2 * tree.node_up.size
    leaves, nodes = (np.where(up < 0, joint + 1, up + joint + 2) for up in (leaf_up, node_up))
    every = np.concatenate([tree.node_up, tree.leaf_up[leaf : leaf + 1], nodes])
    ends = np.concatenate([tree.leaf_up, leaves])
    ends[leaf] = joint
    order = trees.breadth_first(every, every.size)
    return Grown(*trees.renumbered(ends, every, order), np.argsort(order)[:before])
