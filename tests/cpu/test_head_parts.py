"""How large a head is for a share of the time, and what it has learned carried to other clusters."""

import numpy as np
import pytest

from cpu.output import cluster_softmax, head_parts
from cpu.output.head_parts import VISIT, choose, cost
from cpu.tree import tree
from hybrid.contract import Learned

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


def test_sizes_that_are_given_stay():
    counts = 1e6 / np.arange(1, 2001)
    assert choose(counts, 0.1, "tree", 300, 20) == (300, 20) and choose(counts, 0.1, "tree", 1100, None) == (1100, 30)
    alone, clusters = choose(counts, 0.1, "tree", None, 7)
    assert clusters == 7 and 0 < alone < 200
    assert choose(counts, 0.1, "tree", 2000, None) == (2000, 0)
    assert choose(counts, 1e-6, "tree", None, 2000) == (0, 2000)


MASSES = np.array([1.0, 2, 3, 4])


def test_what_a_tree_says_of_its_classes_and_back():
    """Class 0 alone, 3 in a cluster of its own; the node of 1 and 2 is on its right for 3 of 5."""
    cluster = np.int32([-1, 0, 0, 1])
    forest = tree.huffman_forest(cluster, MASSES)
    slots, node = np.float32([[1], [10], [100]]), np.float32([[5]])
    left, right = (~forest.tree.children[0]).tolist()
    share = MASSES[right] / 5
    head, tail = Learned(slots, np.float32([0, 1, 2])), Learned(node, np.float32([np.log(3)]))
    known = head_parts.of_trees(head, tail, np.int32([0, 1, 1, 2]), forest, MASSES)
    expected = {0: 1, left: 10 - share * 5, right: 10 + (1 - share) * 5, 3: 100}
    np.testing.assert_allclose(known.c[:, 0], [expected[v] for v in range(4)], rtol=1e-6)
    chance = {0: 0, left: 1 + np.log(0.25), right: 1 + np.log(0.75), 3: 2}
    np.testing.assert_allclose(known.d, [chance[v] for v in range(4)], rtol=1e-6)
    made = [Learned(np.zeros_like(one.rows), np.zeros_like(one.biases)) for one in (head, tail)]
    head_parts.into_trees(*made, 1, known, forest, MASSES)
    for one, other in zip(made, (head, tail), strict=True):
        np.testing.assert_allclose(one.rows[-2:], other.rows[-2:], rtol=1e-6)
        np.testing.assert_allclose(one.biases[-2:], other.biases[-2:], rtol=1e-6)


def test_what_a_softmax_says_of_its_classes_and_back():
    """Classes 1 and 2 together: the mean of their rows, weighted by 2 and 3, is 4."""
    plan = cluster_softmax.plan(np.int32([-1, 0, 0, 1]))
    head = Learned(np.float32([[1], [10], [100]]), np.float32([0, 1, 2]))
    tail = Learned(np.float32([[1], [6], [7]]), np.float32([0, np.log(3), 5]))
    known = head_parts.of_softmaxes(head, tail, np.int32([0, 1, 1, 2]), plan, MASSES)
    np.testing.assert_allclose(known.c[:, 0], [1, 7, 12, 100], rtol=1e-6)
    np.testing.assert_allclose(known.d, [0, 1 + np.log(0.25), 1 + np.log(0.75), 2], rtol=1e-6)
    head_parts.into_softmaxes(head, tail, 1, known, plan, MASSES)
    np.testing.assert_allclose(head.rows[:, 0], [1, 10, 100], rtol=1e-6)
    np.testing.assert_allclose(head.biases, [0, 1, 2], rtol=1e-6)
    again = head_parts.of_softmaxes(head, tail, np.int32([0, 1, 1, 2]), plan, MASSES)
    for one, other in zip(again, known, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_squares_are_those_of_an_average_visit():
    squares = np.float32([[2, 4], [4, 8]])
    head_parts.spread(squares, np.array([1.0, 2]), np.array([4.0, 1]))
    assert squares.tolist() == [[8, 16], [2, 4]]
    head_parts.spread(None, MASSES, MASSES)
