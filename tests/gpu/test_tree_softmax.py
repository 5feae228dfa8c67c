"""Hierarchical softmax on the device: the oracle that the CPU is held to."""

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu import tree_softmax as cpu_tree_softmax
from cpu.tree.tree import balanced, huffman
from gpu import tree_softmax
from hybrid.contract import Learned
from tests.support.tree_softmax import case
from tests.support.tree_softmax import run as run_on_cpu


def run(gpu, tree, nodes, hidden, target, rate):
    """grad, loss and the moved nodes."""
    plan, there = gpu.run(tree_softmax.plan, tree), gpu.put(nodes)
    grad, loss = gpu.empty(hidden.shape, np.float32), gpu.empty(len(hidden), np.float32)
    work = gpu.run(tree_softmax.workspace, *hidden.shape, tree.depth, np.float32)
    given = gpu.put(hidden), gpu.put(target), None, rate
    gpu.run(tree_softmax.step, grad, loss, Learned(there), work, plan, *given)
    return gpu.get(grad), gpu.get(loss), gpu.get(there)


def close(found, wanted, atol=3e-5):
    """Gradients, losses and nodes."""
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def same(found, wanted):
    """Their bytes."""
    for one, other in zip(found, wanted, strict=True):
        assert one.tobytes() == other.tobytes()


def log_prob(gpu, tree, nodes, hidden, target):
    out, plan = gpu.empty(len(target), np.float32), gpu.run(tree_softmax.plan, tree)
    gpu.run(tree_softmax.log_prob, out, Learned(gpu.put(nodes)), plan, gpu.put(hidden), gpu.put(target))
    return gpu.get(out)


def test_nothing_is_written_beyond_the_examples(gpu):
    tree, (nodes, hidden, target) = balanced(17), case(17, 6, 10)
    out, plan = gpu.put(np.full(10, 7, np.float32)), gpu.run(tree_softmax.plan, tree)
    gpu.run(tree_softmax.log_prob, out[:9], Learned(gpu.put(nodes)), plan, gpu.put(hidden)[:9], gpu.put(target)[:9])
    found = gpu.get(out)
    assert (found[:9] < 0).all() and found[9] == 7


def check_as_on_the_cpu(gpu, *given, atol=3e-5):
    close(run(gpu, *given, 0.1), run_on_cpu(*given, 0.1), atol)


@pytest.mark.parametrize("batch", [1, 32, 65])
def test_batches_around_a_warp_and_a_block(gpu, batch):
    check_as_on_the_cpu(gpu, balanced(17), *case(17, 6, batch, seed=batch))


def test_more_examples_than_a_warp_looks_through_at_once(gpu):
    nodes, hidden, target = case(2, 1, 1100)
    target[1000:1060] = 1
    check_as_on_the_cpu(gpu, balanced(2), nodes, hidden, target, atol=2e-4)


@pytest.mark.parametrize("last", [31, 32, 128])
def test_two_examples_of_a_leaf_far_apart(gpu, last):
    target = np.arange(last + 1, dtype=np.int32)
    target[last] = target[0]
    check_as_on_the_cpu(gpu, balanced(300), *case(300, 3, last + 1)[:2], target)


def test_a_degenerate_tree(gpu):
    tree = huffman(2 ** np.arange(40, dtype=np.int64))
    assert tree.depth == 39
    check_as_on_the_cpu(gpu, tree, *case(40, 5, 40)[:2], np.arange(40, dtype=np.int32))


@pytest.mark.parametrize("width", [1, 33, 300])
def test_probabilities_sum_to_one(gpu, width):
    tree = huffman(np.arange(23))
    nodes, hidden, _ = case(23, width, 23)
    hidden[:] = hidden[0]
    out = log_prob(gpu, tree, nodes, hidden, np.arange(23, dtype=np.int32))
    assert np.exp(out.astype(float)).sum() == pytest.approx(1, abs=1e-5)
    expected = np.empty(23, np.float32)
    cpu_tree_softmax.log_prob(expected, Learned(nodes), tree, hidden, np.arange(23, dtype=np.int32))
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_extreme_scores(gpu):
    """One node: scores of 0, where the slope is largest, and of hundreds, where e^s would overflow or lose all digits."""
    tree, scores = balanced(2), np.array([0, 1e-4, 20, 90, 300, -20, -90, -300], np.float32)
    hidden, nodes, target = scores[:, None].copy(), np.ones((1, 1), np.float32), np.zeros(8, np.int32)
    grad, loss, _ = run(gpu, tree, nodes, hidden, target, 0)
    # Class 0 stands at the left: p = 1 / (1 + e^s)
    np.testing.assert_allclose(loss, np.logaddexp(0, scores.astype(float)), rtol=1e-6, atol=1e-37)
    np.testing.assert_allclose(grad[:, 0], np.exp(-np.logaddexp(0, -scores.astype(float))), rtol=1e-6, atol=1e-37)


def test_a_nan_stays_visible(gpu):
    tree = balanced(4)
    nodes, hidden, target = case(4, 40, 3)
    target[:] = 0, 0, 3
    hidden[0, 39] = np.nan
    grad, loss, moved = run(gpu, tree, nodes, hidden, target, 0.1)
    assert np.isnan(loss).all() and np.isnan(grad).all()  # all pass the root
    passed = [node for node, _ in path(tree, 0)]
    assert np.isnan(moved[passed]).all()
    assert np.isnan(log_prob(gpu, tree, nodes, hidden, target)).tolist() == [True, False, False]


def test_nothing_to_learn(gpu):
    tree = balanced(4)
    nodes, hidden, target = case(4, 16, 0)
    grad, loss, moved = run(gpu, tree, nodes, hidden, target, 0.1)
    assert grad.size == loss.size == log_prob(gpu, tree, nodes, hidden, target).size == 0
    np.testing.assert_array_equal(moved, nodes)
