"""Shapes of trees: every class at the end of one path, as short or as alike as promised; other input is refused."""

import numpy as np
import pytest

from cpu.tree.tree import path
from hybrid import trees

rng = np.random.default_rng(0)
COUNTS = (1000 / np.arange(1, 51)).astype(int)
GROUP = np.arange(50) % 5
VECTORS = (np.eye(5)[GROUP] + 0.01 * rng.normal(size=(50, 5))).astype(np.float32)


def lengths(tree):
    return np.array([len(path(tree, leaf)) for leaf in range(tree.leaf_up.size)])


def paths(tree):
    return [path(tree, leaf) for leaf in range(tree.leaf_up.size)]


MADE = {
    "huffman": lambda: trees.huffman(COUNTS),
    "balanced": lambda: trees.balanced(50),
    "clustered": lambda: trees.clustered(VECTORS, COUNTS),
    "entropy weighted": lambda: trees.entropy_weighted(VECTORS, COUNTS, 0.5),
    "huffman of clusters": lambda: trees.huffman_of_clusters(VECTORS, COUNTS, 7),
    "of one cluster": lambda: trees.huffman_of_clusters(VECTORS, COUNTS, 100),
}


@pytest.mark.parametrize("name", MADE)
def test_each_tree_is_whole_and_numbered_as_promised(name):
    tree = MADE[name]()
    assert (0.5 ** lengths(tree)).sum() == 1, "the probabilities of an untrained tree sum to 1"
    again = trees.checked(tree.leaf_up, tree.node_up)
    assert paths(again) == paths(tree) and again.depth == tree.depth == lengths(tree).max()
    assert tree.leaf_up.dtype == tree.node_up.dtype == np.int32


def below_one_node(tree, classes):
    """Whether some node has just these classes below it."""
    nodes = [{node for node, _ in steps} for steps in paths(tree)]
    shared = set.intersection(*(nodes[v] for v in classes))
    return any({v for v in range(len(nodes)) if node in nodes[v]} == set(classes) for node in shared)


def test_two_clusters_are_two_halves_of_the_tree_and_one_is_the_huffman_tree():
    sides = np.arange(50) % 2
    tree = trees.huffman_of_clusters(np.eye(2, dtype=np.float32)[sides], COUNTS, 25)
    assert all(below_one_node(tree, np.flatnonzero(sides == side).tolist()) for side in range(2))
    assert paths(MADE["of one cluster"]()) == paths(MADE["huffman"]())


def weighted(quality):
    return trees.entropy_weighted(VECTORS, COUNTS, quality)


def test_parents_of_any_numbering():
    #      4
    #   2     0
    # 1   3     (class 0 is node 0, class 1 node 3, class 2 node 1)
    tree = trees.from_parents([4, 2, 4, 2, -1], [0, 3, 1])
    assert paths(tree) == [[(0, 0)], [(0, 1), (1, 1)], [(0, 1), (1, 0)]]


@pytest.mark.parametrize("turned", [False, True])
def test_paths_as_paddle_has_them(turned):
    tree = trees.huffman(COUNTS)
    table, code = np.full((2, 50, tree.depth), -1)
    for leaf, steps in enumerate(paths(tree)):
        for at, (node, turn) in enumerate(reversed(steps) if turned else steps):
            table[leaf, at], code[leaf, at] = 3 * node + 7, turn  # nodes of any number
    assert paths(trees.from_paths(table, code)) == paths(tree)


PARENTS = [
    ([4, 2, 4, 2], [0, 3, 1], "4 nodes, expected 5"),
    ([4, 2, 4, 2, 9], [0, 3, 1], "-1 at one root"),
    ([4, 4, 4, 2, -1], [0, 3, 1], "node 2 has 1 children"),
    ([4, 2, 4, 2, -1], [0, 3, 3], "one class at each of the 3 nodes"),
    ([4, 4, 5, 4.5, -1], [0, 3, 1], "parents: found float64"),
]


@pytest.mark.parametrize(("parents", "leaf", "message"), PARENTS)
def test_parents_that_make_no_tree(parents, leaf, message):
    with pytest.raises(ValueError, match=message):
        trees.from_parents(parents, leaf)


def test_a_circle_and_a_chain_hang_from_no_root():
    # 0 and 1 hang from the root, 2; 3 and 4 from each other
    with pytest.raises(ValueError, match="circle"):
        trees.from_parents([2, 2, -1, 4, 3, 3, 4], [0, 1, 5, 6])
    classes = 1200
    chain = np.concatenate([np.arange(-1, classes - 2), np.arange(classes - 1), [classes - 2]])
    with pytest.raises(ValueError, match="too deep"):
        trees.from_parents(chain, np.arange(classes - 1, 2 * classes - 1))


TABLE, CODE = np.array([[0, -1], [0, 1], [0, 1]]), np.array([[0, -1], [1, 0], [1, 1]])
PATHS = [
    (TABLE[:, ::-1], CODE[:, ::-1], "-1 only after"),
    (TABLE, np.where(CODE == 0, 2, CODE), "expected 0 or 1"),
    (np.minimum(TABLE, 0), CODE, "1 different nodes, expected 2"),
    (TABLE, np.array([[0, -1], [1, 0], [1, 0]]), "one root, and two children"),
    (TABLE, np.array([[0, -1], [0, 0], [1, 1]]), "different ways"),
]


@pytest.mark.parametrize(("table", "code", "message"), PATHS)
def test_paths_that_make_no_tree(table, code, message):
    with pytest.raises(ValueError, match=message):
        trees.from_paths(table, code)


def test_arguments_are_refused():
    with pytest.raises(ValueError, match=r"vectors: found float64 \(5,\)"):
        trees.clustered(np.ones(5))
    with pytest.raises(ValueError, match=r"vectors: found float64 \(5, 0\), expected numbers \(V, D\)"):
        trees.clustered(np.ones((5, 0)))
    with pytest.raises(ValueError, match=r"vectors: found <U1 \(2, 1\), expected numbers"):
        trees.clustered([["a"], ["b"]])
    with pytest.raises(ValueError, match=r"vectors\[3\]: found NaN"):
        trees.clustered(np.where(np.arange(5)[:, None] == 3, np.nan, np.ones((5, 2))))
    with pytest.raises(ValueError, match="counts: found 4, expected 5"):
        trees.clustered(np.ones((5, 2)), np.ones(4))
    with pytest.raises(ValueError, match="quality: found"):
        weighted(1.5)
    with pytest.raises(ValueError, match="splits: found 'even'"):
        trees.clustered(VECTORS, splits="even")
    with pytest.raises(ValueError, match="size: found 0"):
        trees.huffman_of_clusters(VECTORS, COUNTS, 0)
    with pytest.raises(ValueError, match="numbered breadth first"):
        trees.checked(np.array([1, 0, 3]), np.array([-1, 0]))


@pytest.mark.parametrize("node_up", [[4, 0, 1], [-1, 1, 0], [-1, 0], [-1, 0, 1, 2]])
def test_pointers_that_are_numbered_otherwise_are_refused(node_up):
    """Of a tree of four classes: a root with a parent, nodes out of order, one too few, one too many."""
    leaf_up = np.array([2, 3, 4, 5])
    assert trees.checked(leaf_up, np.array([-1, 0, 1])).depth == 2
    with pytest.raises(ValueError, match="tree: expected pointers to parents"):
        trees.checked(leaf_up, np.array(node_up))


def test_paths_of_free_splits_have_at_most_three_times_as_many_nodes_as_equal_ones():
    assert [trees.deepest(classes) for classes in (2, 3, 4, 5, 1000, 1024, 1025)] == [3, 6, 6, 9, 30, 30, 33]
