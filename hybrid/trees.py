"""Shapes of trees over classes, for `TreeReadout(counts, width, tree=...)`: by counts, by likeness, or from elsewhere.

Every function returns a `cpu.tree.tree.Tree` and raises ValueError for what makes no tree over V >= 2 classes, naming what was
found. Classes that are alike stand side by side where their vectors (V, D) point the same way: rows of a model that has
learned, word vectors, features of items. Only directions count, and a vector of zeros is like no other.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from . import check

if TYPE_CHECKING:
    from cpu.tree.tree import Tree

SPLITS = ("free", "equal")
DEEPEST = 1024  # nodes on a path: scratch of a step is as many numbers an example
SLACK = 3  # a tree of free splits has paths of at most so many times log2 V nodes


def huffman(counts: Any) -> "Tree":
    """The shortest mean path, where class v is met counts[v] >= 0 times (V,); knows nothing of likeness."""
    from cpu.tree import tree

    return tree.huffman(check.counts(counts))


def balanced(classes: int) -> "Tree":
    """All paths about log2 V nodes long; classes stand in their order, so that neighbouring numbers share nodes."""
    from cpu.tree import tree

    return tree.balanced(check.classes(classes))


def clustered(vectors: Any, counts: Any = None, *, splits: str = "free", seed: int = 0) -> "Tree":
    """Repeated 2-means over the vectors (V, D): classes that are alike share nodes.

    counts  (V,) how often each class is met; None: equally often. It says only how threads share the work
    splits  "free": between the most unlike; frequent classes may stand deep, but no path is longer than 3 log2 V nodes.
            "equal": into halves, all paths are about log2 V nodes long
    seed    which of many similar trees is found

    Prabhu et al. 2018, "Parabel".
    """
    from cpu.tree import clusters

    rows, masses = _checked(vectors, counts)
    seed = check.whole("seed", seed, 0, 2**63 - 1)
    free = check.choice("splits", splits, SPLITS) == "free"
    cuts = clusters.Cuts(masses, 1.0, deepest(len(rows))) if free else None
    return _tree(*clusters.binary(rows, cuts, seed=seed), counts)


def from_parents(parents: Any, leaf: Any, counts: Any = None) -> "Tree":
    """The binary tree of 2 V - 1 nodes, numbered in any order.

    parents  (2 V - 1,) whole numbers: the parent of each node, -1 at the root. Of two children the lower one is on the left
    leaf     (V,) whole numbers: the node of each class, one of those that are nobody's parent
    counts   see `clustered`
    """
    from cpu.tree import tree

    above, leaves = check.row("parents", parents).astype(np.int64), check.row("leaf", leaf).astype(np.int64)
    classes = check.classes(leaves.size)
    if above.size != 2 * classes - 1:
        raise ValueError(
            f"parents: found {above.size} nodes, expected {2 * classes - 1} for {classes} classes, two a node"
        )
    if above.max() >= above.size or above.min() < -1 or (above < 0).sum() != 1:
        raise ValueError("parents: expected the number of each node's parent, and -1 at one root")
    children = np.bincount(above[above >= 0], minlength=above.size)
    if (odd := np.flatnonzero((children != 0) & (children != 2))).size:
        raise ValueError(f"parents: node {odd[0]} has {children[odd[0]]} children, expected 2 or none")
    if not np.array_equal(np.sort(leaves), np.flatnonzero(children == 0)):
        raise ValueError(f"leaf: expected one class at each of the {classes} nodes without children")
    inner = np.cumsum(children > 0) - 1  # a node's number among those that have children
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
    """The tree of pointers that are numbered as in `cpu.tree.tree.Tree`, such as a checkpoint keeps; ValueError for others."""
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
    """How often classes are taken to be met: once more than counted, so that a side of a node always weighs something."""
    return counts.astype(np.float64) + 1


def deepest(classes: int) -> int:
    """How many nodes the paths of a tree have at most whose splits are free, and of one that classes are added to."""
    return SLACK * max((classes - 1).bit_length(), 1)


def _tree(leaf_up: np.ndarray, node_up: np.ndarray, counts: Any) -> "Tree":
    from cpu.tree import tree

    return tree.of_pointers(leaf_up, node_up, _counts(counts, leaf_up.size))


def _counts(counts: Any, classes: int) -> np.ndarray:
    made = np.ones(classes) if counts is None else check.counts(counts)
    if made.shape != (classes,):
        raise ValueError(f"counts: found {made.size}, expected {classes}, one a class")
    return made


def _checked(vectors: Any, counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """The vectors as float32, and how often each class is met; a class that never is, counts as one that seldom is."""
    rows = np.asarray(check.unmasked("vectors", vectors))
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.shape[1]:
        raise ValueError(f"vectors: found {rows.dtype} {rows.shape}, expected numbers (V, D), a row a class")
    check.classes(len(rows))
    check.finite("vectors", rows := np.ascontiguousarray(rows, np.float32))
    return rows, met(_counts(counts, len(rows)))
