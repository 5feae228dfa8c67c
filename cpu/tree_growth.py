"""More classes for a tree that has learned: a tree of theirs beside one leaf. The paths of all other classes stay the same."""

from typing import NamedTuple

import numpy as np

from cpu import tree as trees
from cpu.array import Array
from cpu.tree import Tree


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
    lengths = _lengths(tree)
    free = np.flatnonzero(lengths + below <= max(deepest, lengths.min() + below))
    rare = free[counts[free] == counts[free].min()]
    return int(rare[lengths[rare].argmin()])


def _lengths(tree: Tree) -> Array:
    """Nodes on the path of each class, (V,)."""
    above = np.empty(tree.node_up.size, np.int64)
    for depth, level in enumerate(trees.levels(tree)):
        above[level] = depth + 1
    return above[tree.leaf_up >> 1]


def _hung(tree: Tree, leaf: int, leaf_up: Array, node_up: Array) -> Grown:
    """A tree with a new node in the place of a leaf: the leaf on its left, the other tree on its right."""
    before, joint = tree.node_up.size, 2 * tree.node_up.size
    leaves, nodes = (np.where(up < 0, joint + 1, up + joint + 2) for up in (leaf_up, node_up))
    every = np.concatenate([tree.node_up, tree.leaf_up[leaf : leaf + 1], nodes])
    ends = np.concatenate([tree.leaf_up, leaves])
    ends[leaf] = joint
    order = trees.breadth_first(every, every.size)
    return Grown(*trees.renumbered(ends, every, order), np.argsort(order)[:before])
