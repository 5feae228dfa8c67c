"""Trees over labels."""

import numpy as np
import pytest

from cpu.label_tree import binary, from_parents
from cpu.tree.tree import huffman, path
from tests.support.label_trees import SHAPES


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_stand_breadth_first_and_children_together(shape):
    tree = SHAPES[shape]()
    nodes = tree.up.size
    assert tree.up[0] == -1 and (np.diff(tree.up) >= 0).all()  # so children rise with their parents
    for node in range(nodes):
        children = np.arange(tree.child_at[node], tree.child_at[node + 1])
        assert (tree.up[children] == node).all() and (tree.label[node] >= 0) == (not len(children))
    assert tree.child_at[0] == 1 and tree.child_at[-1] == nodes
    np.testing.assert_array_equal(tree.label[tree.leaf], np.arange(tree.leaf.size))
    assert {array.dtype for array in tree} == {np.dtype(np.int32)}


def test_a_binary_label_tree_has_the_paths_of_the_tree():
    counts = np.arange(30) ** 2
    tree, labels = huffman(counts), binary(huffman(counts))
    for label in range(30):
        node, length = int(labels.leaf[label]), 0
        while labels.up[node] >= 0:
            node, length = int(labels.up[node]), length + 1
        assert length == len(path(tree, label))


@pytest.mark.parametrize(
    ("parents", "leaf", "message"),
    [
        ([0, 0, 0], [1, 2], "-1 at one root"),
        ([-1, -1, 0], [1, 2], "-1 at one root"),
        ([-1, 0, 3], [1, 2], "-1 at one root"),
        ([-1], [0], "-1 at one root"),
        ([-1, 0, 0], [1], "one label at each of the 2 nodes"),
        ([-1, 0, 0], [1, 1], "one label at each of the 2 nodes"),
        ([-1, 0, 1], [1], "one label at each of the 1 nodes"),
        ([-1, 0, 0, 4, 3, 3], [1, 2, 5], "3 nodes that hang from no root"),
    ],
)
def test_what_is_no_tree_over_the_labels_is_refused(parents, leaf, message):
    with pytest.raises(ValueError, match=message):
        from_parents(parents, leaf)
