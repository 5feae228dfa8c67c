"""The top of a tree as dense products: the batch's gradient in float64, and nothing of the tail."""

import numpy as np
import pytest

from cpu.tree.tree import balanced, huffman, path
from cpu.tree.tree import split as cut
from tests.support.split_tree import oracle, run
from tests.support.tree_softmax import case


@pytest.mark.parametrize("classes, width, top", [(2, 1, 1), (3, 5, 1), (3, 5, 2), (200, 33, 1), (1000, 16, 130)])
def test_step_is_that_of_the_batch(classes, width, top):
    for tree in (balanced(classes), huffman(1000 // np.arange(1, classes + 1))):
        nodes, hidden, target = case(classes, width, 150)
        found, expected = (make(tree, top, nodes, hidden, target, 0.1) for make in (run, oracle))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


def test_by_hand():
    """Three classes, counts 2, 1, 1: class 0 is a child of the root, the others of node 1. Scores of 0: every miss is 1/2."""
    nodes, hidden = np.zeros((2, 2), np.float32), np.array([[1, 2], [4, 8]], np.float32)
    grad, loss, moved = run(huffman([2, 1, 1]), 1, nodes, hidden, np.array([0, 1], np.int32), 2)
    signs = [1 if path(huffman([2, 1, 1]), leaf)[0][1] else -1 for leaf in (0, 1)]
    assert moved.tolist() == (signs[0] * hidden[:1] + signs[1] * hidden[1:]).tolist()
    assert grad.tolist() == [[0, 0], [0, 0]] and loss == pytest.approx(2 * [np.log(2)], rel=1e-6)


@pytest.mark.parametrize("build", [lambda: balanced(77), lambda: huffman(1000 // np.arange(1, 78))])
def test_the_parts_of_a_path_are_the_path(build):
    tree = build()
    for top in range(1, 77):
        upper, lower = cut(tree, top)
        for leaf in range(77):
            begins, ends = path(upper, leaf), path(lower, leaf)
            assert begins + ends == path(tree, leaf)
            assert all(node < top for node, _ in begins) and all(node >= top for node, _ in ends)
        assert upper.depth == max(len(path(upper, leaf)) for leaf in range(77))
