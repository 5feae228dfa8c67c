"""Shapes of trees: every class at the end of one path, as short or as alike as promised; other input is refused."""

import numpy as np
import pytest

from bench.oracles.tree import path
from hybrid import trees

rng = np.random.default_rng(0)
COUNTS = (1000 / np.arange(1, 51)).astype(int)
VECTORS = (np.eye(5)[np.arange(50) % 5] + 0.01 * rng.normal(size=(50, 5))).astype(np.float32)


def lengths(tree):
    return np.array([len(path(tree, leaf)) for leaf in range(tree.leaf_up.size)])


def paths(tree):
    return [path(tree, leaf) for leaf in range(tree.leaf_up.size)]


MADE = {
    "huffman": lambda: trees.huffman(COUNTS),
    "balanced": lambda: trees.balanced(50),
    "clustered": lambda: trees.clustered(VECTORS, COUNTS),
}


@pytest.mark.parametrize("name", MADE)
def test_each_tree_is_whole_and_numbered_as_promised(name):
    tree = MADE[name]()
    assert (0.5 ** lengths(tree)).sum() == 1, "the probabilities of an untrained tree sum to 1"
    again = trees.checked(tree.leaf_up, tree.node_up)
    assert paths(again) == paths(tree) and again.depth == tree.depth == lengths(tree).max()
    assert tree.leaf_up.dtype == tree.node_up.dtype == np.int32


def test_parents_of_any_numbering():
    #      4
    #   2     0
    # 1   3     (class 0 is node 0, class 1 node 3, class 2 node 1)
    tree = trees.from_parents([4, 2, 4, 2, -1], [0, 3, 1])
    assert paths(tree) == [[(0, 0)], [(0, 1), (1, 1)], [(0, 1), (1, 0)]]


BAD = [
    (lambda: trees.from_parents([4, 2, 4, 2], [0, 3, 1]), "4 nodes, expected 5"),
    (lambda: trees.from_parents([4, 2, 4, 2, 9], [0, 3, 1]), "-1 at one root"),
    (lambda: trees.from_parents([4, 4, 4, 2, -1], [0, 3, 1]), "node 2 has 1 children"),
    (lambda: trees.from_parents([4, 2, 4, 2, -1], [0, 3, 3]), "one class at each of the 3 nodes"),
    (lambda: trees.from_parents([4, 4, 5, 4.5, -1], [0, 3, 1]), "parents: found float64"),
    (lambda: trees.clustered(np.ones(5)), r"vectors: found float64 \(5,\)"),
    (lambda: trees.clustered(np.ones((5, 0))), r"vectors: found float64 \(5, 0\), expected numbers \(V, D\)"),
    (lambda: trees.clustered([["a"], ["b"]]), r"vectors: found <U1 \(2, 1\), expected numbers"),
    (lambda: trees.clustered([[1.0], [1.0], [np.nan]]), r"vectors\[2\]: found NaN"),
    (lambda: trees.clustered(np.ones((5, 2)), np.ones(4)), "counts: found 4, expected 5"),
    (lambda: trees.checked(np.array([1, 0, 3]), np.array([-1, 0])), "numbered breadth first"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_makes_no_tree_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_circle_and_a_chain_hang_from_no_root():
    # 0 and 1 hang from the root, 2; 3 and 4 from each other
    with pytest.raises(ValueError, match="circle"):
        trees.from_parents([2, 2, -1, 4, 3, 3, 4], [0, 1, 5, 6])
    classes = 1200
    chain = np.concatenate([np.arange(-1, classes - 2), np.arange(classes - 1), [classes - 2]])
    with pytest.raises(ValueError, match="too deep"):
        trees.from_parents(chain, np.arange(classes - 1, 2 * classes - 1))


@pytest.mark.parametrize("node_up", [[4, 0, 1], [-1, 1, 0], [-1, 0], [-1, 0, 1, 2]])
def test_pointers_that_are_numbered_otherwise_are_refused(node_up):
    """Of a tree of four classes: a root with a parent, nodes out of order, one too few, one too many."""
    leaf_up = np.array([2, 3, 4, 5])
    assert trees.checked(leaf_up, np.array([-1, 0, 1])).depth == 2
    with pytest.raises(ValueError, match="tree: expected pointers to parents"):
        trees.checked(leaf_up, np.array(node_up))
