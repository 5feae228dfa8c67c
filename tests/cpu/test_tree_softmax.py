"""Hierarchical softmax on the CPU: a distribution, learned as the serial loop over rows learns it."""

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu.tree.tree import balanced, huffman
from tests.support.tree_softmax import case, run
from tests.support.visits import learn


@pytest.mark.parametrize("classes, width", [(2, 1), (3, 5), (1000, 128)])
def test_step_learns_as_numpy_does(classes, width):
    for tree in (balanced(classes), huffman(1000 // np.arange(1, classes + 1))):
        nodes, hidden, target = case(classes, width, 70)
        grad, loss, moved = run(tree, nodes, hidden, target, 0.1)
        rows = nodes.astype(np.float64)
        lists = [path(tree, leaf) for leaf in target]
        expected_grad, expected_loss = learn(rows, hidden.astype(np.float64), lists, 0.1)
        np.testing.assert_allclose(grad, expected_grad, rtol=0, atol=3e-5)
        np.testing.assert_allclose(loss, expected_loss, rtol=0, atol=3e-5)
        np.testing.assert_allclose(moved, rows, rtol=0, atol=3e-5)


@pytest.mark.parametrize("classes", [2, 3000])
def test_same_bits_as_the_serial_loop_at_any_number_of_threads(threads, classes):
    tree = huffman(10**6 // np.arange(1, classes + 1) ** 2)
    nodes, hidden, target = case(classes, 48, 100)
    target[10:20] = target[0]
    grad, loss, moved = run(tree, nodes, hidden, target, 0.1)
    for b in range(100):
        single = slice(b, b + 1)
        single_grad, single_loss, nodes = run(tree, nodes, hidden[single], target[single], 0.1)
        np.testing.assert_array_equal(single_grad, grad[single])
        np.testing.assert_array_equal(single_loss, loss[single])
    np.testing.assert_array_equal(nodes, moved)
