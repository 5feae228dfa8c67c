"""Transfer of learned node weights to another tree, and new classes for a tree below one leaf.

If the right side of a node has the share p of its examples, log p(right) is approximately (1 - p) w . h + constant there, and
log p(left) is -p w . h + constant. So for class v: log p(v) = c_v . h + constant, where c_v is the sum of (turn - p) w along
the path to v.
"""

from typing import Any, NamedTuple

import numpy as np

from cpu.runtime.compiled import Array, launched
from cpu.tree import tree as trees
from cpu.tree.tree import Tree


def vectors(learned: Any, tree: Tree, masses: Array) -> Array:
    """Returns c_v of every class, (V, D) float32: similar if the tree treats two classes similarly. learned: Learned of
    the nodes (V - 1, D); masses (V,) above 0: the frequency of each class."""
    sides, rows = sides_of(tree.children, masses), learned.rows
    share = (sides[:, 1] / np.maximum(sides.sum(axis=1), 1e-300)).astype(np.float32)
    classes = np.zeros((masses.size, rows.shape[1]), np.float32)
    _down(classes, np.zeros_like(rows), tree.children, rows, share)
    return classes


def kept(learned: Any, tree: Tree, new: Tree) -> tuple[Any, int]:
    """Copies `learned` of a tree's nodes to the nodes of a new tree; returns new arrays and the number of nodes kept.

    A node that separates the same two sets keeps its state, negated if left and right are swapped. The others are 0:
    initialised from the old tree's class vectors they were overconfident, and the model got worse.
    """
    made = type(learned)(*(None if array is None else np.zeros_like(array) for array in learned))
    names = np.random.default_rng(0).integers(0, 2**64, tree.leaf_up.size, np.uint64)
    # A set is identified by the sum of its classes' random names modulo 2^64: two different sets collide once in 10^19.
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
    """Returns node rows (V - 1, D) for which `vectors` yields these vectors (V, D) float32, minus their weighted mean.

    A node has the mean over the classes on its right minus that over those on its left, weighted by masses (V,).
    """
    rows, means = np.empty((2, len(vectors) - 1, vectors.shape[1]), np.float32)
    differences(rows, means, tree.children, vectors, sides_of(tree.children, masses))
    return rows


@launched()
def sides_of(children, values):
    """Returns the sums of the classes' values on the left and right of each node, (N, 2); children follow parents."""
    sides = np.empty(children.shape, values.dtype)
    for node in range(len(children) - 1, -1, -1):
        for turn in range(2):
            child = children[node, turn]
            sides[node, turn] = sides[child, 0] + sides[child, 1] if child >= 0 else values[~child]
    return sides


@launched()
def _down(c, ways, children, rows, share):
    """Adds to each class the contributions of the nodes on its path."""
    for node in range(len(children)):
        for turn in range(2):
            child = children[node, turn]
            way = ways[node] + (np.float32(turn) - share[node]) * rows[node]
            if child >= 0:
                ways[child] = way
            else:
                c[~child] += way


@launched()
def differences(rows, means, children, vectors, sides):
    """Writes each node's mean over its right side minus that over its left, and their mean, weighted by `sides_of`."""
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
    place    (V - 1,) the new numbers of the nodes of the tree of V classes
    """

    leaf_up: Array
    node_up: Array
    place: Array


def grown(tree: Tree, counts: Array, more: Array, deepest: int) -> Grown:
    """Adds n classes to a tree: their Huffman tree becomes the sibling of the rarest class with room, under a new node.

    counts   (V,) the frequency of each class
    more     (n,) the frequencies of the new classes, n >= 1
    deepest  maximum number of nodes on a path for a class with room; exceeded only if no class has room

    Without `deepest`, classes added one by one would all end up on one ever longer path.
    """
    if more.size == 1:  # a tree of one class has no nodes
        return _hung(tree, _beside(tree, counts, 1, deepest), np.full(1, -1, np.int32), np.empty(0, np.int32))
    new = trees.huffman(more)
    return _hung(tree, _beside(tree, counts, 1 + new.depth, deepest), new.leaf_up, new.node_up)


def _beside(tree: Tree, counts: Array, below: int, deepest: int) -> int:
    """Returns the rarest class whose path may grow by this many nodes; of equally rare ones the one with the shortest path."""
    lengths = trees.levels(tree.node_up)[tree.leaf_up >> 1] + 1
    free = np.flatnonzero(lengths + below <= max(deepest, lengths.min() + below))
    rare = free[counts[free] == counts[free].min()]
    return int(rare[lengths[rare].argmin()])


def _hung(tree: Tree, leaf: int, leaf_up: Array, node_up: Array) -> Grown:
    """Replaces a leaf by a new node: the leaf on its left, the other tree on its right."""
    before, joint = tree.node_up.size, 2 * tree.node_up.size
    leaves, nodes = (np.where(up < 0, joint + 1, up + joint + 2) for up in (leaf_up, node_up))
    every = np.concatenate([tree.node_up, tree.leaf_up[leaf : leaf + 1], nodes])
    ends = np.concatenate([tree.leaf_up, leaves])
    ends[leaf] = joint
    order = trees.breadth_first(every, every.size)
    return Grown(*trees.renumbered(ends, every, order), np.argsort(order)[:before])
