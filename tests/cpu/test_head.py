"""The head of a readout: a softmax over slots, how large it is for a share of the time, and how it begins by vectors."""

import numpy as np
import pytest

from cpu import head
from cpu.head import VISIT, choose, cost, into_softmaxes, into_trees
from cpu.output import cluster_softmax
from cpu.tree import tree
from hybrid.contract import Learned
from tests.support.heads import case, oracle


def test_a_step_is_the_float64_oracle(threads):
    slot, rows, hidden, target, grad = case()
    expected = oracle(slot, rows, hidden, target, grad, 0.1)
    work, loss = head.workspace(20, 5, np.float32), np.empty(12, np.float32)
    before = np.empty(12, np.float32)
    head.log_prob(before, Learned(rows), work, slot, hidden, target)
    head.step(grad, loss, Learned(rows), work, slot, hidden, target, None, 0.1)
    for one, other in zip((grad, loss, rows, -before), (*expected, expected[1]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


COUNTS = np.array([1, 4, 1, 2])  # by falling frequency a half, a quarter, two eighths


def test_what_a_step_costs():
    """Alone: 0, then 2 classes. The first: of 1.75 bits the cluster tells 1. The second: with 1/4, 1 bit is left."""
    found = cost(COUNTS, np.array([0, 2, 2]), np.array([2, 1, 2]), "tree")
    np.testing.assert_allclose(found, [2 + 0.75 * VISIT, 3 + 0.25 * VISIT, 4])
    np.testing.assert_allclose(cost(COUNTS, np.array([0, 2, 4]), np.array([2, 1, 0]), "softmax"), [2 + 2, 3 + 0.5, 4])


@pytest.mark.parametrize("tails", ["tree", "softmax"])
def test_without_clusters_or_for_all_of_the_time_all_classes_are_alone(tails):
    for share in (1e-3, 0.5, 1.0):
        assert choose(COUNTS, share, tails, None, 0) == choose(COUNTS, share, tails, 4, 0) == (4, 0)
    assert choose(COUNTS, 1.0, tails, None, None) == (4, 0)


@pytest.mark.parametrize("tails", ["tree", "softmax"])
def test_the_largest_head_for_the_share_is_taken(tails):
    counts = 1e6 / np.arange(1, 20001)
    before = 0
    for share in (0.02, 0.1, 0.5):
        alone, clusters = choose(counts, share, tails, None, None)
        more = cost(counts, np.array([alone, alone + 1]), np.array([clusters, clusters]), tails)
        assert more[0] <= share * 20000 < more[1] + 2 and alone > before
        assert clusters == round(np.sqrt(20000 - alone))
        before = alone


MASSES = np.array([1.0, 2, 3, 4])


VECTORS = np.float32([[1], [5], [10], [100]])


def untrained(*rows):
    return [Learned(np.zeros((count, 1), np.float32), np.zeros(count, np.float32)) for count in rows]


def test_a_tree_begins_with_means_and_differences_of_its_classes():
    """Class 0 alone, 3 in a cluster of its own; 1 and 2 have a mean of (2 * 5 + 3 * 10) / 5."""
    forest = tree.huffman_forest(np.int32([-1, 0, 0, 1]), MASSES)
    left, right = (~forest.tree.children[0]).tolist()
    head, tail = untrained(3, 1)
    into_trees(head, tail, 1, VECTORS, forest, MASSES)
    np.testing.assert_allclose(head.rows[1:, 0], [8, 100], rtol=1e-6)
    np.testing.assert_allclose(tail.rows, VECTORS[[right]] - VECTORS[[left]], rtol=1e-6)
    np.testing.assert_allclose(head.biases, [0, np.log(2), 0], rtol=1e-6)
    assert not tail.biases.any()


def test_a_softmax_begins_with_the_vectors_of_its_classes():
    plan = cluster_softmax.plan(np.int32([-1, 0, 0, 1]))
    head, tail = untrained(3, 3)
    into_softmaxes(head, tail, 1, VECTORS, plan, MASSES)
    np.testing.assert_allclose(head.rows[1:, 0], [8, 100], rtol=1e-6)
    np.testing.assert_array_equal(tail.rows, VECTORS[1:])
    np.testing.assert_allclose(head.biases, [0, np.log(2), 0], rtol=1e-6)
