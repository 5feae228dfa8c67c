"""Binary trees over V classes as flat arrays, built from class counts or the number of classes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cpu.runtime.compiled import Array, launched
from cpu.runtime.memory import empty
from cpu.tree.logistic_rows import OWNERS


class Tree(NamedTuple):
    """A full binary tree: V >= 2 leaves, one per class, and V - 1 inner nodes, numbered breadth first from the root, 0.

    leaf_up   (V,) int32        2 * parent + turn of each leaf; turn 1: the leaf is its parent's right child
    node_up   (V - 1,) int32    the same of each inner node; -1 at the root
    children  (V - 1, 2) int32  left and right child: an inner node, or ~leaf if negative
    owner     (V - 1,) uint8    which of the OWNERS updates the node; never decreases from a leaf to the root
    depth     int               inner nodes on the longest path

    Pointers to parents encode all paths in 8 bytes a class; a table of paths would take about 100.
    """

    leaf_up: np.ndarray
    node_up: np.ndarray
    children: np.ndarray
    owner: np.ndarray
    depth: int

    def ranks(self) -> np.ndarray:
        """Returns the number of leaves to the left of each, (V,) int32."""
        return _ranks(self.leaf_up, self.node_up)


def huffman(counts: ArrayLike) -> Tree:
    """Builds the tree of least mean path if class v occurs `counts[v]` times; counts (V,) >= 0, V >= 2, zeros allowed.

    Of equal counts the lower class comes first, and leaves before inner nodes, which also keeps the tree shallow. Two queues
    are merged (van Leeuwen 1976): O(V log V) for the sort, O(V) for the rest.
    """
    counts = np.asarray(counts)
    order = np.argsort(counts, kind="stable")
    leaf_up, node_up = empty((counts.size,), np.int32), empty((counts.size - 1,), np.int32)
    _number(leaf_up, node_up, _merge(counts[order].astype(np.float64)), order)
    return of_pointers(leaf_up, node_up, counts)


def balanced(classes: int) -> Tree:
    """Builds the tree of least depth over `classes` >= 2 classes, in order from left to right."""
    # Places are numbered as in a heap, so place j has 2 * parent + turn = j - 1. The last `classes` places are leaves, the
    # leftmost of them on the last level.
    up = np.arange(-1, 2 * classes - 2, dtype=np.int32)
    last_level = 2 ** (classes - 1).bit_length() - 1
    leaf_up = np.roll(up[classes - 1 :], classes - 1 - last_level)
    return of_pointers(leaf_up, up[: classes - 1].copy(), np.ones(classes))


@launched()
def levels(node_up):
    """Returns the depth of each node; numbered breadth first."""
    above = np.zeros(node_up.size, np.int32)
    for node in range(node_up.size):
        if node_up[node] >= 0:
            above[node] = above[node_up[node] >> 1] + 1
    return above


def breadth_first(node_up: Array, most: int) -> Array:
    """Returns the inner nodes in breadth-first order, from pointers of any numbering; nodes deeper than `most` are left out.

    node_up  (N,) 2 * parent + turn, -1 at the root; no two the same
    """
    below = np.full(2 * node_up.size, -1, np.int64)  # the inner node at each place, if any
    below[node_up[node_up >= 0]] = np.flatnonzero(node_up >= 0)
    every_level = [np.flatnonzero(node_up < 0)]
    while every_level[-1].size and len(every_level) <= most:
        children = below[np.column_stack([2 * every_level[-1], 2 * every_level[-1] + 1])].ravel()
        every_level.append(children[children >= 0])
    return np.concatenate(every_level)


def renumbered(leaf_up: Array, node_up: Array, order: Array) -> tuple[Array, Array]:
    """Renumbers pointers to parents, int32, so that node order[i] becomes node i; -1 stays -1."""
    place = np.empty(order.size + 1, np.int64)  # one more, the target of a pointer of -1
    place[order] = np.arange(order.size)
    leaves, nodes = (np.where(up < 0, -1, 2 * place[up >> 1] + (up & 1)) for up in (leaf_up, node_up[order]))
    return leaves.astype(np.int32), nodes.astype(np.int32)


def of_pointers(leaf_up: Array, node_up: Array, counts: Array) -> Tree:
    """Builds the tree of pointers to parents, its nodes numbered breadth first.

    Its owners divide the visits as evenly as whole stretches of the tree allow.
    """
    children = np.empty((node_up.size, 2), np.int32)
    visits = np.zeros(node_up.size)
    weights = counts.astype(np.float64) if counts.any() else np.ones(counts.size)
    _hang(children, visits, leaf_up, node_up, weights)
    owner = np.empty(node_up.size, np.uint8)
    _share(owner, children, visits)
    return Tree(leaf_up, node_up, children, owner, _depth(node_up))


@launched()
def _merge(counts):
    """Merges ascending counts; returns pairs (V - 1, 2), each inner node's children: leaf i as i, inner node i as V + i."""
    leaves = counts.size
    pairs = np.empty((leaves - 1, 2), np.int32)
    weights = np.empty(leaves - 1)
    leaf = inner = 0
    for made in range(leaves - 1):
        weights[made] = 0
        for turn in range(2):
            if inner == made or (leaf < leaves and counts[leaf] <= weights[inner]):
                pairs[made, turn] = leaf
                weights[made] += counts[leaf]
                leaf += 1
            else:
                pairs[made, turn] = leaves + inner
                weights[made] += weights[inner]
                inner += 1
    return pairs


@launched()
def _number(leaf_up, node_up, pairs, order):
    """Numbers the inner nodes breadth first from the last pair, and writes the pointers."""
    leaves = order.size
    made = np.empty(leaves - 1, np.int32)  # inner node -> its pair; also the queue of the search
    made[0] = leaves - 2
    node_up[0] = -1
    numbered = 1
    for node in range(leaves - 1):
        for turn in range(2):
            item = pairs[made[node], turn]
            if item < leaves:
                leaf_up[order[item]] = 2 * node + turn
            else:
                made[numbered] = item - leaves
                node_up[numbered] = 2 * node + turn
                numbered += 1


@launched()
def _hang(children, visits, leaf_up, node_up, weights):
    """Turns pointers to parents into children, and sums the leaves' weights over each node's subtree."""
    for leaf in range(leaf_up.size):
        children[leaf_up[leaf] >> 1, leaf_up[leaf] & 1] = ~leaf
        visits[leaf_up[leaf] >> 1] += weights[leaf]
    for node in range(node_up.size - 1, 0, -1):
        children[node_up[node] >> 1, node_up[node] & 1] = node
        visits[node_up[node] >> 1] += visits[node]


@launched()
def _share(owner, children, visits):
    """Cuts the tree in depth-first order, into stretches of equal work.

    So each owner has a few whole subtrees, which few paths leave, and owners ascend on the way up from a leaf.
    """
    work = visits.copy()  # work of each node and its descendants
    for node in range(owner.size - 1, -1, -1):
        for turn in range(2):
            if children[node, turn] >= 0:
                work[node] += work[children[node, turn]]
    before = np.zeros(owner.size)  # work that precedes the node
    for node in range(owner.size):
        owner[node] = max(OWNERS - 1 - int(OWNERS * before[node] / work[0]), 0)
        after = before[node] + visits[node]
        for turn in range(2):
            child = children[node, turn]
            if child >= 0:
                before[child] = after
                after += work[child]


@launched()
def _depth(node_up):
    """Returns the nodes on the path of the last node, which is on the deepest level."""
    depth, node = 1, node_up.size - 1
    while node > 0:
        node = node_up[node] >> 1
        depth += 1
    return depth


@launched()
def _ranks(leaf_up, node_up):
    """Returns Tree.ranks."""
    leaves = np.zeros(node_up.size, np.int32)  # leaves below each node
    left = np.zeros(node_up.size, np.int32)  # leaves below its left child
    for up in leaf_up:
        leaves[up >> 1] += 1
        left[up >> 1] += 1 - (up & 1)
    for node in range(node_up.size - 1, 0, -1):  # breadth first: children after their parents
        up = node_up[node]
        leaves[up >> 1] += leaves[node]
        left[up >> 1] += leaves[node] * (1 - (up & 1))
    first, rank = np.zeros(node_up.size, np.int32), np.empty(leaf_up.size, np.int32)
    for node in range(1, node_up.size):
        up = node_up[node]
        first[node] = first[up >> 1] + left[up >> 1] * (up & 1)
    for leaf in range(leaf_up.size):
        up = leaf_up[leaf]
        rank[leaf] = first[up >> 1] + left[up >> 1] * (up & 1)
    return rank
