"""Class trees for `TreeReadout(counts, width, tree=...)`: by counts, by similarity, or from user data.

Functions return a `cpu.tree.tree.Tree` and raise ValueError, with the reason, for input that is not a tree over V >= 2
classes. Classes are similar if their vectors (V, D) have similar directions: rows of a trained model, word vectors, item
features. A zero vector is similar to none.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from . import check

if TYPE_CHECKING:
    from cpu.tree.tree import Tree

DEEPEST = 1024  # maximum path length; a step needs as many scratch numbers per example
SLACK = 3  # a clustered tree has paths of at most SLACK * log2 V nodes


def huffman(counts: Any) -> "Tree":
    """Returns the tree of shortest mean path for class frequencies counts (V,) >= 0; ignores similarity."""
    from cpu.tree import tree

    return tree.huffman(check.counts(counts))


def balanced(classes: int) -> "Tree":
    """Returns a tree with all paths about log2 V nodes long; classes keep their order, so adjacent ids share nodes."""
    from cpu.tree import tree

    return tree.balanced(check.classes(classes))


def clustered(vectors: Any, counts: Any = None, *, seed: int = 0) -> "Tree":
    """Returns a tree by repeated 2-means over the vectors (V, D): similar classes share nodes.

    counts  (V,) class frequencies; None: uniform. They only affect how threads share the work
    seed    selects one of many similar trees

    Cuts are between the most dissimilar classes. Frequent classes may be deep, but paths have at most 3 log2 V nodes.

    Prabhu et al. 2018, "Parabel".
    """
    from cpu.tree import clusters, tree

    rows = np.asarray(check.unmasked("vectors", vectors))
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.shape[1]:
        raise ValueError(f"vectors: found {rows.dtype} {rows.shape}, expected numbers (V, D), one row per class")
    check.classes(len(rows))
    check.finite("vectors", rows := np.ascontiguousarray(rows, np.float32))
    known, seed = _counts(counts, len(rows)), check.whole("seed", seed, 0, 2**63 - 1)
    return tree.of_pointers(*clusters.binary(rows, deepest(len(rows)), seed=seed), known)


def from_parents(parents: Any, leaf: Any, counts: Any = None) -> "Tree":
    """Returns the binary tree of 2 V - 1 nodes, numbered in any order.

    parents  (2 V - 1,) whole numbers: the parent of each node, -1 at the root. The lower-numbered child is on the left
    leaf     (V,) whole numbers: the node of each class, which must have no children
    counts   see `clustered`
    """
    from cpu.tree import tree

    above, leaves = check.row("parents", parents).astype(np.int64), check.row("leaf", leaf).astype(np.int64)
    classes = check.classes(leaves.size)
    if above.size != 2 * classes - 1:
        raise ValueError(f"parents: found {above.size} nodes, expected {2 * classes - 1} for {classes} classes")
    if above.max() >= above.size or above.min() < -1 or (above < 0).sum() != 1:
        raise ValueError("parents: expected each node's parent, and -1 at one root")
    children = np.bincount(above[above >= 0], minlength=above.size)
    if (odd := np.flatnonzero((children != 0) & (children != 2))).size:
        raise ValueError(f"parents: node {odd[0]} has {children[odd[0]]} children, expected 2 or none")
    if not np.array_equal(np.sort(leaves), np.flatnonzero(children == 0)):
        raise ValueError(f"leaf: expected one class at each of the {classes} nodes without children")
    inner = np.cumsum(children > 0) - 1  # a node's number among the inner nodes
    order, turn = np.argsort(above, kind="stable")[1:], np.zeros(above.size, np.int64)
    turn[order[1::2]] = 1
    up = np.where(above < 0, -1, 2 * inner[above] + turn)
    leaf_up, node_up = up[leaves], up[children > 0]
    order = tree.breadth_first(node_up, DEEPEST)
    if order.size != node_up.size:
        raise ValueError(
            f"tree: only {order.size} of {node_up.size} nodes hang from the root by a path of at most {DEEPEST}: the others "
            "are in a circle, or too deep"
        )
    return _tree(*tree.renumbered(leaf_up, node_up, order), counts)


def checked(leaf_up: Any, node_up: Any, counts: Any = None) -> "Tree":
    """Returns the tree of pointers numbered as in `cpu.tree.tree.Tree`, as in a checkpoint; ValueError if invalid."""
    inner = leaf_up.size - 1
    whole = node_up.shape == (inner,) and inner > 0 and node_up[0] == -1 and (np.diff(node_up) > 0).all()
    whole = whole and (node_up[1:] >> 1 < np.arange(1, inner)).all()
    if not whole or not np.array_equal(np.sort(np.concatenate([leaf_up, node_up[1:]])), np.arange(2 * inner)):
        raise ValueError("tree: expected pointers to parents that make a binary tree, numbered breadth first")
    tree = _tree(np.array(leaf_up, np.int32), np.array(node_up, np.int32), counts)
    if tree.depth > DEEPEST:
        raise ValueError(f"tree: found a path of {tree.depth} nodes, expected at most {DEEPEST}")
    return tree


def met(counts: np.ndarray) -> np.ndarray:
    """Returns smoothed class frequencies, count + 1, so that each side of a node has positive mass."""
    return counts.astype(np.float64) + 1


def deepest(classes: int) -> int:
    """Returns the maximum path length of a clustered tree, or of one to which classes are added."""
    return SLACK * max((classes - 1).bit_length(), 1)


def _tree(leaf_up: np.ndarray, node_up: np.ndarray, counts: Any) -> "Tree":
    from cpu.tree import tree

    return tree.of_pointers(leaf_up, node_up, _counts(counts, leaf_up.size))


def _counts(counts: Any, classes: int) -> np.ndarray:
    made = np.ones(classes) if counts is None else check.counts(counts)
    if made.shape != (classes,):
        raise ValueError(f"counts: found {made.size}, expected {classes}, one per class")
    return made
