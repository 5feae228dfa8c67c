"""Trees over labels as flat arrays: a node's children lie together, so any number of them is described by where they begin."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cpu.array import Array
from cpu.tree import Tree


class LabelTree(NamedTuple):
    """N nodes, numbered breadth first from the root, 0; V of them are leaves, one a label. Every node may have a row.

    up        (N,) int32      parent of each node; -1 at the root
    child_at  (N + 1,) int32  the children of node n are the nodes child_at[n] to child_at[n + 1]; a leaf has none
    leaf      (V,) int32      the node of each label
    label     (N,) int32      the label of each leaf; -1 at an inner node
    visits    (V,) int32      the nodes that an example of a label visits, without the root
    """

    up: np.ndarray
    child_at: np.ndarray
    leaf: np.ndarray
    label: np.ndarray
    visits: np.ndarray


def from_parents(parents: ArrayLike, leaf: ArrayLike) -> LabelTree:
    """The tree of N nodes of any numbering and arity.

    parents  (N,) parent of each node; -1 at the root, which is one
    leaf     (V,) the node of each label: those that are nobody's parent

    Raises ValueError where these make no tree whose leaves are the labels.
    """
    parents, leaf = np.asarray(parents, np.int32), np.asarray(leaf, np.int32)
    _check(parents, leaf)
    order = _breadth_first(parents)
    place = np.empty(parents.size, np.int32)  # a node's number from here on
    place[order] = np.arange(parents.size)
    up = np.where(parents[order] < 0, -1, place[parents[order]]).astype(np.int32)
    label = np.full(parents.size, -1, np.int32)
    label[place[leaf]] = np.arange(leaf.size)
    # Children stand in the order of their parents: those of node n come before those of n + 1, after the root.
    child_at = 1 + np.concatenate([[0], np.cumsum(np.bincount(up[1:], minlength=up.size))]).astype(np.int32)
    return LabelTree(up, child_at, place[leaf], label, _visits(up, np.diff(child_at))[place[leaf]])


def binary(tree: Tree) -> LabelTree:
    """The label tree of a tree over classes (cpu/tree.py): its inner nodes, and a node for every class."""
    inner = tree.node_up.size
    parents = np.concatenate([tree.node_up >> 1, tree.leaf_up >> 1])  # -1 >> 1 is -1
    return from_parents(parents, np.arange(inner, inner + tree.leaf_up.size))


def _visits(up: Array, children: Array) -> Array:
    """Of each node: how many children it and the nodes above it have, together."""
    found, above = children.copy(), up.copy()
    while (above >= 0).any():
        found += np.where(above >= 0, children[above], 0)
        above = np.where(above >= 0, up[above], -1)
    return found


def _check(parents: Array, leaf: Array) -> None:
    nodes = parents.size
    if parents.ndim != 1 or nodes < 2 or parents.max() >= nodes or parents.min() < -1 or (parents < 0).sum() != 1:
        raise ValueError("parents: expected the number of each node's parent, and -1 at one root")
    childless = np.setdiff1d(np.arange(nodes), parents)
    if leaf.ndim != 1 or not np.array_equal(np.sort(leaf), childless):
        raise ValueError(f"leaf: expected one label at each of the {childless.size} nodes without children")


def _breadth_first(parents: Array) -> Array:
    """The nodes level by level; within a level by the place of the parent, then by number."""
    by_parent = np.argsort(parents, kind="stable")
    begin = np.searchsorted(parents[by_parent], np.arange(parents.size + 1))
    levels = [by_parent[:1]]
    while len(levels[-1]):
        counts = begin[levels[-1] + 1] - begin[levels[-1]]
        first = np.repeat(begin[levels[-1]] - np.cumsum(counts) + counts, counts)
        levels.append(by_parent[first + np.arange(counts.sum())])
    order = np.concatenate(levels)
    if order.size != parents.size:
        raise ValueError(f"parents: found {parents.size - order.size} nodes that hang from no root: a circle")
    return order
