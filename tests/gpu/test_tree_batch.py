"""Nodes that learn from a few examples at once, on the device: the oracle, at its ends the serial loop and the whole batch."""

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu.tree.tree import balanced, huffman
from gpu import tree_batch
from hybrid.contract import Learned
from tests.support.tree_softmax import case
from tests.support.visits import OPTIMISERS, check_close, copied, drawn, learn_together


def oracle(tree, learned, hidden, target, together, rate=0.1, weight=None):
    """grad, loss and what the nodes have become, in float64."""
    learned, lists = copied(learned), [path(tree, leaf) for leaf in target]
    weight = np.ones(len(target)) if weight is None else weight
    grad, loss = learn_together(learned, hidden.astype(float), lists, weight, rate, together)
    return grad, loss, learned


def run(gpu, tree, learned, hidden, target, together, rate=0.1, weight=None):
    """grad, loss and what the nodes have become."""
    plan = gpu.run(tree_batch.plan, tree)
    work = gpu.run(tree_batch.workspace, len(hidden) + 3, hidden.shape[1], tree.depth, together, np.float32)
    grad, loss = gpu.empty(hidden.shape, np.float32), gpu.empty(len(hidden), np.float32)
    there = copied(learned, gpu.put)
    weight = None if weight is None else gpu.put(weight)
    given = gpu.put(hidden), gpu.put(target), weight, rate, together
    gpu.run(tree_batch.step, grad, loss, there, work, plan, *given)
    return gpu.get(grad), gpu.get(loss), copied(there, gpu.get)


def close(found, wanted, atol=5e-5):
    for one, other in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    check_close(found[2], wanted[2], atol)


@pytest.mark.parametrize(
    "classes, width, batch, together",
    [
        (2, 1, 1, 1),
        *((3, 5, 65, together) for together in (1, 3, 64)),
        *((300, 33, 63, together) for together in (16, 100)),
        *((300, 128, 150, together) for together in (1, 16, 64, 100, 150)),
        *((40, 270, 90, together) for together in (3, 64)),
        (3, 5, 33, 33),  # the root has one example beyond a span
        (9, 5, 300, 300),  # more examples than threads that read their ranks
    ],
)
def test_step_is_the_oracles(gpu, classes, width, batch, together):
    for tree in (balanced(classes), huffman(1000 // np.arange(1, classes + 1))):
        nodes, hidden, target = case(classes, width, batch)
        given = tree, Learned(nodes), hidden, target, together
        found = run(gpu, *given)
        close(found, oracle(*given))


def test_a_node_with_more_examples_than_its_list_has_places(gpu):
    """All examples in one class, and a batch that is sorted by digits."""
    tree, (nodes, hidden, _) = huffman([50, 3, 2, 1, 1]), case(5, 3, 4500)
    target = np.where(np.arange(4500) % 3, 0, 3).astype(np.int32)
    for together in (64, 1024):
        given = tree, Learned(nodes), hidden, target, together, 1e-3
        close(run(gpu, *given), oracle(*given), 2e-4)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_every_rule(gpu, optimiser):
    rng, tree = np.random.default_rng(3), huffman(1000 // np.arange(1, 41))
    _, hidden, target = case(40, 40, 90)
    for biases, together in ((False, 8), (True, 8), (True, 90)):
        learned = drawn(rng, 39, 40, optimiser, biases)
        for weight in (None, rng.random(90).astype(np.float32)):
            given = tree, learned, hidden, target, together, 0.1, weight
            close(run(gpu, *given), oracle(*given))


def test_every_run_gives_the_same_bytes(gpu):
    nodes, hidden, target = case(300, 9, 150)

    def work():
        grad, loss, learned = run(gpu, huffman(1000 // np.arange(1, 301)), Learned(nodes), hidden, target, 16)
        return grad, loss, learned.rows

    gpu.check_same_bytes(work)
