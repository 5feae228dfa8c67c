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
    cuts = clusters.Cuts(masses, 1.0, deepest(len(rows)))
    free = check.choice("splits", splits, SPLITS) == "free"
    return _tree(*clusters.binary(rows, cuts if free else None, seed=_seed(seed)), counts)


def entropy_weighted(vectors: Any, counts: Any, quality: float, *, seed: int = 0) -> "Tree":
    """Between speed and likeness: paths about as short as Huffman's at quality 0, those of `clustered` at 1.

    vectors  (V, D)
    counts   (V,) how often each class is met
    quality  0 to 1: of a split, how much the likeness on each side counts against the bits that its turn tells

    After Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification".
    """
    from cpu.tree import clusters

    rows, masses = _checked(vectors, counts)
    if not 0 <= check.number("quality", quality, 0) <= 1:
        raise ValueError(f"quality: found {quality}, expected a number from 0 (speed) to 1")
    cuts = clusters.Cuts(masses, float(quality), deepest(len(rows)))
    return _tree(*clusters.binary(rows, cuts, seed=_seed(seed)), counts)


def huffman_of_clusters(vectors: Any, counts: Any, size: int = 32, *, seed: int = 0) -> "Tree":
    """A Huffman tree over clusters of about `size` classes that are alike, and one within each.

    vectors (V, D), counts (V,); clusters are of equal size, up to one class.
    """
    from cpu.tree import clusters, tree

    rows, masses = _checked(vectors, counts)
    parts = -(-len(rows) // check.whole("size", size, 1))
    part = clusters.equal(rows, parts, seed=_seed(seed))
    if parts == 1:
        return huffman(counts)
    top = tree.huffman(np.bincount(part, masses))
    leaf_up, node_up = np.empty(len(rows), np.int64), np.empty(len(rows) - 1, np.int64)
    node_up[: parts - 1], first = top.node_up, parts - 1
    for ids, up in zip(
        np.split(np.argsort(part, kind="stable"), np.bincount(part).cumsum()[:-1]), top.leaf_up, strict=True
    ):
        if ids.size == 1:
            leaf_up[ids] = up
            continue
        inside = tree.huffman(masses[ids])
        leaf_up[ids], node_up[first : first + ids.size - 1] = inside.leaf_up + 2 * first, inside.node_up + 2 * first
        node_up[first] = up
        first += ids.size - 1
    return _numbered(leaf_up, node_up, counts)


def from_parents(parents: Any, leaf: Any, counts: Any = None) -> "Tree":
    """The binary tree of 2 V - 1 nodes, numbered in any order.

    parents  (2 V - 1,) whole numbers: the parent of each node, -1 at the root. Of two children the lower one is on the left
    leaf     (V,) whole numbers: the node of each class, one of those that are nobody's parent
    counts   see `clustered`
    """
    above, leaves = _whole("parents", parents, 1), _whole("leaf", leaf, 1)
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
    return _numbered(up[leaves], up[children > 0], counts)


def from_paths(table: Any, code: Any, counts: Any = None) -> "Tree":
    """The tree of the paths of all classes, as `path_table` and `path_code` of PaddlePaddle's hsigmoid_loss have them.

    table   (V, L) whole numbers: the nodes on the path of each class, from the leaf to the root or the other way; -1 after its
            end. Nodes may have any numbers of at least 0
    code    (V, L): 0 or 1, the turn at each of them; 1 is to the right, whose probability grows with the node's score
    counts  see `clustered`
    """
    nodes, turns = _whole("table", table, 2), _whole("code", code, 2)
    classes = check.classes(len(nodes))
    if nodes.shape != turns.shape:
        raise ValueError(f"code: found the shape {turns.shape}, expected that of table, {nodes.shape}")
    on = nodes >= 0
    length = on.sum(axis=1)
    if not (length > 0).all() or (on != (np.arange(nodes.shape[1]) < length[:, None])).any():
        raise ValueError("table: expected at least one node in every row, and -1 only after a path's end")
    if ((turns[on] != 0) & (turns[on] != 1)).any():
        raise ValueError("code: expected 0 or 1 at every node of a path")
    known, numbers = np.unique(nodes[on], return_inverse=True)
    if known.size != classes - 1:
        raise ValueError(f"table: found {known.size} different nodes, expected {classes - 1} for {classes} classes")
    places = np.full(nodes.shape, -1, np.int64)
    places[on] = 2 * numbers + turns[on]
    if (nodes[:, 0] != nodes[0, 0]).any():  # from the leaf to the root: turn them round
        at = length[:, None] - 1 - np.arange(nodes.shape[1])
        places = np.where(at >= 0, np.take_along_axis(places, np.maximum(at, 0), axis=1), -1)
    node_up = np.full(known.size, -1, np.int64)
    above, below = places[:, :-1][places[:, 1:] >= 0], places[:, 1:][places[:, 1:] >= 0] >> 1
    node_up[below] = above
    if (node_up[below] != above).any():
        raise ValueError("table: two paths come to one node by different ways")
    return _numbered(places[np.arange(classes), length - 1], node_up, counts)


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


def _numbered(leaf_up: Any, node_up: Any, counts: Any) -> "Tree":
    """The tree of pointers 2 * parent + turn in any numbering of the inner nodes."""
    from cpu.tree import tree

    inner = node_up.size
    taken = np.concatenate([leaf_up, node_up[node_up >= 0]])
    if (node_up < 0).sum() != 1 or not np.array_equal(np.sort(taken), np.arange(2 * inner)):
        raise ValueError(
            f"tree: expected one root, and two children at each of {inner} nodes, each child at one of them"
        )
    order = tree.breadth_first(node_up, DEEPEST)
    if order.size != inner:
        raise ValueError(
            f"tree: only {order.size} of {inner} nodes hang from the root by a path of at most {DEEPEST}: the others are in "
            "a circle, or too deep"
        )
    return _tree(*tree.renumbered(leaf_up, node_up, order), counts)


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
    rows = np.asarray(vectors)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.shape[1]:
        raise ValueError(f"vectors: found {rows.dtype} {rows.shape}, expected numbers (V, D), a row a class")
    check.classes(len(rows))
    check.finite("vectors", rows := np.ascontiguousarray(rows, np.float32))
    return rows, met(_counts(counts, len(rows)))


def met(counts: np.ndarray) -> np.ndarray:
    """How often classes are taken to be met: once more than counted, so that a side of a node always weighs something."""
    return counts.astype(np.float64) + 1


def _whole(name: str, given: Any, dimensions: int) -> np.ndarray:
    array = np.asarray(given)
    if array.ndim != dimensions or array.dtype.kind not in "iu" or not array.size:
        raise ValueError(
            f"{name}: found {array.dtype} {array.shape}, expected whole numbers in {dimensions} dimensions"
        )
    return array.astype(np.int64)


def _seed(seed: int) -> int:
    return check.whole("seed", seed, 0, 2**63 - 1)


def deepest(classes: int) -> int:
    """How many nodes the paths of a tree have at most whose splits are free, and of one that classes are added to."""
    return SLACK * max((classes - 1).bit_length(), 1)
