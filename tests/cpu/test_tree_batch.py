"""Nodes that learn from a few examples at once: the oracle, the serial loop at one end, the whole batch at the other."""

import itertools

import numpy as np
import pytest

from cpu import tree_batch
from cpu.tree.tree import balanced, huffman
from hybrid.contract import Learned
from tests.support.tree_batch import oracle, run
from tests.support.tree_softmax import case
from tests.support.visits import check_close, drawn


def close(found, wanted, atol):
    for one, other in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    check_close(found[2], wanted[2], atol)


@pytest.mark.parametrize("together", [1, 3, 64, 1000])
def test_step_is_the_oracles(threads, together):
    for tree in (balanced(2), balanced(40), huffman(1000 // np.arange(1, 301))):
        nodes, hidden, target = case(len(tree.leaf_up), 17, 150, np.float32)
        given = tree, Learned(nodes), hidden, target, together
        close(run(*given), oracle(*given), 3e-5)


@pytest.mark.parametrize(
    "optimiser, biases, weighted", [("sgd", True, False), ("row-adagrad", False, True), ("adagrad", True, True)]
)
def test_every_optimiser(optimiser, biases, weighted):
    rng = np.random.default_rng(3)
    tree = huffman(1000 // np.arange(1, 41))
    learned = drawn(rng, 39, 5, optimiser, biases)
    _, hidden, target = case(40, 5, 90, np.float32)
    given = tree, learned, hidden, target, 8, 0.1, rng.random(90).astype(np.float32) if weighted else None
    close(run(*given), oracle(*given), 2e-5)


@pytest.mark.parametrize("examples, together", [(1, 1), (3, 2), (500, 16), (500, 500)])
def test_the_same_bits_at_any_number_of_threads(examples, together, check_threads):
    """Also where threads have no example, and where a node's examples are those of several threads."""
    nodes, hidden, target = case(300, 33, examples)

    def work():
        grad, loss, learned = run(huffman(1000 // np.arange(1, 301)), Learned(nodes), hidden, target, together)
        return grad, loss, learned.rows

    check_threads(work)


@pytest.mark.parametrize("together", [1, 2, 7, 64])
def test_groups_of_neighbours_have_places_of_their_own(together):
    """Random lengths of the nodes of a level: those of each crowded one are after those of the one before."""
    rng = np.random.default_rng(together)
    for _ in range(200):
        lengths = rng.integers(1, 5 * together + 2, rng.integers(1, 9))
        place = taken = 0
        for length in lengths:
            if length > together:
                first = 2 * (place // together)
                assert first >= taken
                taken = first - (-length // together)
            place += length
        assert taken <= tree_batch.groups(place, together)


def test_nodes_are_dealt_by_their_examples():
    nodes = np.array([[0, 0, 10], [1, 0, 4], [1, 4, 10], [2, 0, 3], [2, 3, 4]])  # 10, 4, 6, 3 and 1 examples
    dealt, cuts = tree_batch.deal(nodes, 3)
    found = [sorted(last - first for _, first, last in dealt[begin:end]) for begin, end in itertools.pairwise(cuts)]
    assert found == [[10], [1, 6], [3, 4]]
    assert tree_batch.deal(nodes, 1)[1].tolist() == [0, 5]
    assert tree_batch.deal(nodes[:0], 2)[1].tolist() == [0, 0, 0]
