"""What the nodes of a tree have learned: of each class, and kept by those nodes of another tree that part the same classes.

Where a node's right side is met in the share p of its examples, log p(right) is, near there, (1 - p) w . h + constant, and
log p(left) is -p w . h + constant. So the tree says of class v: log p(v) = c_v . h + constant, c_v the sum of (turn - p) w
along the path to v.
"""

from typing import Any

import numpy as np

from cpu.array import Array
from cpu.compiled import launched
from cpu.tree import Tree, levels


def vectors(learned: Any, tree: Tree, masses: Array) -> Array:
    """c_v of every class, (V, D) float32: alike where the tree treats two classes alike.

    learned  rows (V - 1, D), biases, squares and bias_squares of the nodes, the last three perhaps None
    masses   (V,) above 0: how often each class is met
    """
    return _leaves(learned.rows, tree, _shares(sides_of(tree.children, masses)))


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


def _places(tree: Tree) -> Array:
    """(V - 1, 2): the two children of each node, as rows of an array of all leaves and then all nodes."""
    return np.where(tree.children < 0, ~tree.children, tree.children + tree.leaf_up.size)


@launched()
def sides_of(children, values):
    """(N, 2): the sum of the classes' values on the left and on the right of each node; children stand after their parents."""
    sides = np.empty(children.shape, values.dtype)
    for node in range(len(children) - 1, -1, -1):
        for turn in range(2):
            child = children[node, turn]
            sides[node, turn] = sides[child, 0] + sides[child, 1] if child >= 0 else values[~child]
    return sides


def _shares(sides: Array) -> Array:
    """(V - 1,): how often the right side is met where the node is."""
    return (sides[:, 1] / sides.sum(axis=1)).astype(np.float32)


def _leaves(rows: Array, tree: Tree, shares: Array) -> Array:
    """The sum of (turn - share) * row along the path of each class, (V, D)."""
    classes, places = tree.leaf_up.size, _places(tree)
    sums = np.zeros((2 * classes - 1, rows.shape[1]), np.float32)
    for level in levels(tree):
        here = sums[classes:][level]
        for turn in range(2):
            sums[places[level, turn]] = here + (turn - shares[level])[:, None] * rows[level]
    return sums[:classes]


@launched()
def differences(rows, means, children, vectors, sides):
    """Write each node's mean over the classes on its right less that on its left, and their mean, weighted by `sides_of`."""
    for node in range(len(children) - 1, -1, -1):
        left, right = children[node]
        low = means[left] if left >= 0 else vectors[~left]
        high = means[right] if right >= 0 else vectors[~right]
        rows[node] = high - low
        means[node] = low + np.float32(sides[node, 1] / (sides[node, 0] + sides[node, 1])) * rows[node]
