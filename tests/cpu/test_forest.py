"""Trees for clusters of classes."""

import numpy as np

from cpu.tree import tree
from cpu.tree.logistic_rows import OWNERS


def test_each_cluster_has_the_huffman_tree_of_its_counts():
    rng = np.random.default_rng(0)
    counts, cluster = rng.integers(0, 50, 40), rng.integers(-1, 4, 40)
    cluster[[3, 4]] = [4, 5]  # clusters of one class each
    found, roots = tree.huffman_forest(cluster, counts)
    assert len(found.node_up) == (cluster >= 0).sum() - 6 and roots[4:].tolist() == [~3, ~4]
    assert (found.leaf_up[cluster < 0] == -1).all() and found.leaf_up[3] == -1
    for k in range(4):
        members = np.flatnonzero(cluster == k)
        alone = tree.huffman(counts[members])
        for place, v in enumerate(members):
            way, expected = tree.path(found, v), tree.path(alone, place)
            assert [turn for _, turn in way] == [turn for _, turn in expected] and way[0][0] == roots[k]
    assert found.depth == max(len(tree.path(found, v)) for v in range(40))


def test_nodes_are_numbered_and_owned_as_in_a_tree():
    """Breadth first over all trees; owners never fall on the way up, and share the work about evenly."""
    rng = np.random.default_rng(1)
    counts, cluster = 3000 // np.arange(1, 3001), rng.integers(0, 30, 3000)
    found, roots = tree.huffman_forest(cluster, counts)
    up = found.node_up >> 1
    level = np.zeros(len(up), int)
    visits = np.zeros(len(up))
    for node in range(30, len(up)):
        level[node] = level[up[node]] + 1
    for v in range(3000):
        for node, _ in tree.path(found, v):
            visits[node] += counts[v]
    assert (np.diff(level) >= 0).all() and sorted(roots) == list(range(30)) and (found.node_up[:30] == -1).all()
    assert (found.owner[up[30:]] >= found.owner[30:]).all()
    work = np.bincount(found.owner, visits, OWNERS)
    assert work.max() < 1.5 * work.mean()
    for node, turn in np.ndindex(len(up), 2):
        child = found.children[node, turn]
        assert (found.node_up[child] if child >= 0 else found.leaf_up[~child]) == 2 * node + turn
