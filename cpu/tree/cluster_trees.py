"""Trees for clusters of classes: a `Tree` with several roots, and classes that are in none of its trees.

In the arrays of a `Tree` (cpu/tree/tree.py) a root has node_up -1, and a class without a path has leaf_up -1. So all kernels
that climb, cpu/tree_softmax.py's, give such a class the log-probability 0, and any other that of its way from its own root: the
probability of the class given its cluster.
"""

from typing import NamedTuple

import numpy as np

from cpu.runtime.compiled import Array
from cpu.tree import tree as trees
from cpu.tree.tree import Tree


class Forest(NamedTuple):
    """A tree for each of K clusters.

    tree   N nodes, one fewer a cluster than it has classes; numbered breadth first over all trees at once, so roots come first
    roots  (K,) int32: the root of each cluster; of a cluster of a single class, ~class
    """

    tree: Tree
    roots: np.ndarray


def huffman(cluster: Array, counts: Array) -> Forest:
    """A Huffman tree in each cluster.

    cluster  (V,) whole numbers: the cluster of each class, -1 for a class that is in none; none of 0 to K - 1 is empty
    counts   (V,), how often each class is met
    """
    leaf_up, node_ups, roots, first = np.full(cluster.size, -1, np.int32), [np.empty(0, np.int32)], [], 0
    for members in parts(cluster):
        roots.append(~members[0] if members.size == 1 else len(node_ups) - 1)
        if members.size > 1:
            leaves, nodes = trees.huffman_pointers(counts[members])
            leaf_up[members] = leaves + 2 * first
            node_ups.append(np.where(nodes < 0, nodes, nodes + 2 * first).astype(np.int32))
            first += nodes.size
    node_up = np.concatenate(node_ups)
    pointers = trees.renumbered(leaf_up, node_up, trees.breadth_first(node_up, node_up.size))
    return Forest(trees.of_pointers(*pointers, np.where(cluster < 0, 0, counts)), np.array(roots, np.int32))


def parts(cluster: Array) -> list[Array]:
    """The classes of each cluster, rising."""
    order = np.argsort(cluster, kind="stable")
    begins = np.searchsorted(cluster[order], np.arange(cluster.max(initial=-1) + 1))
    return np.split(order, begins)[1:]
