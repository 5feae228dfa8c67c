"""The top of a tree as dense products on the device: the oracle that the CPU is held to."""

import numpy as np
import pytest

from cpu.tree.tree import huffman
from cpu.tree.tree import split as cut
from gpu import split, tree_softmax
from hybrid.contract import Learned
from tests.support.split_tree import oracle
from tests.support.tree_softmax import case


def run(gpu, tree, top, nodes, hidden, target, rate):
    """One step, with a gradient of ones to add to."""
    plan = gpu.run(tree_softmax.plan, cut(tree, top)[0])
    work = gpu.run(split.workspace, len(hidden) + 3, hidden.shape[1], top, np.float32)
    grad, loss, there = gpu.put(np.ones_like(hidden)), gpu.empty(len(hidden), np.float32), gpu.put(nodes[:top])
    given = gpu.put(hidden), gpu.put(target), None, rate
    gpu.run(split.step, grad, loss, Learned(there), work, plan, *given)
    return gpu.get(grad) - 1, gpu.get(loss), gpu.get(there)


@pytest.mark.parametrize(
    "classes, width, batch, top", [(2, 1, 1, 1), (3, 5, 65, 2), (300, 33, 63, 1), (1000, 16, 150, 130)]
)
def test_step_is_that_of_the_batch(gpu, classes, width, batch, top):
    tree = huffman(1000 // np.arange(1, classes + 1))
    problem = (tree, top, *case(classes, width, batch), 0.1)
    found = run(gpu, *problem)
    for one, other in zip(found, oracle(*problem), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)  # a node's sum over 150 examples


def test_a_thread_judges_an_example(gpu, launched):
    tree = huffman(1000 // np.arange(1, 31))
    run(gpu, tree, 5, *case(30, 4, 65), 0.1)
    assert launched["judge"] == (2, 64)


def test_nodes_that_no_example_meets_stay_as_they_are(gpu):
    """0 is a number that the smallest product would change."""
    nodes, hidden, target = np.zeros((29, 4), np.float32), np.full((1, 4), 1e20, np.float32), np.array([0], np.int32)
    tree = huffman(1000 // np.arange(1, 31))
    found = run(gpu, tree, 20, nodes, hidden, target, 1.0)[2]
    assert 0 < (found != 0).any(axis=1).sum() < tree.depth + 1


def test_every_run_gives_the_same_bytes(gpu):
    problem = (huffman(1000 // np.arange(1, 301)), 200, *case(300, 9, 150), 0.1)
    gpu.check_same_bytes(lambda: run(gpu, *problem))


def test_a_nan_stays_visible(gpu):
    nodes, hidden, target = case(30, 4, 5)
    hidden[2, 1] = np.nan
    _, loss, _ = run(gpu, huffman(np.arange(30)), 3, nodes, hidden, target, 0.1)
    assert np.isnan(loss).tolist() == [False, False, True, False, False]
