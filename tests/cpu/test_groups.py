"""Groups of one target, and their tiles (cpu/group_tiles.py): against NumPy, by difference, at any number of threads."""

import itertools

import numba
import numpy as np
import pytest

from cpu import tree as trees
from cpu import tree_softmax
from cpu.logistic_rows import LONGEST
from hybrid.contract import Learned
from tests.support.visits import check_close, copied, drawn, learn_nodes

CLASSES = 60


def case(width, dtype, lengths, seed=0):
    rng = np.random.default_rng(seed)
    tree = trees.huffman(np.arange(1, CLASSES + 1))
    target = np.repeat(rng.integers(0, CLASSES, len(lengths)), lengths).astype(np.int32)
    nodes = rng.normal(size=(CLASSES - 1, width)).astype(dtype) / width**0.5
    return tree, nodes, rng.normal(size=(len(target), width)).astype(dtype), target


def step(tree, nodes, hidden, target, rate, mode="grouped", room=5):
    """One step on a copy of the nodes, in a workspace with room for more rows: grad, loss and the moved nodes."""
    work = tree_softmax.workspace(len(target) + room, hidden.shape[1], tree.depth, hidden.dtype)
    grad, loss, nodes = np.empty_like(hidden), np.empty(len(target), hidden.dtype), nodes.copy()
    tree_softmax.step(grad, loss, Learned(nodes), work, tree, hidden, target, None, rate, mode)
    return grad, loss, nodes


def oracle(tree, nodes, hidden, target, rate):
    nodes, first = nodes.astype(float), 0
    grad, loss = np.zeros(hidden.shape), np.zeros(len(target))
    while first < len(target):
        last = first + 1
        while last < len(target) and target[last] == target[first] and last - first < LONGEST:
            last += 1
        met, turn = (np.array(column) for column in zip(*trees.path(tree, int(target[first])), strict=True))
        part = hidden[first:last].astype(float)
        score = part @ nodes[met].T
        miss = turn - 1 / (1 + np.exp(-score))
        grad[first:last] = -miss @ nodes[met]
        loss[first:last] = np.log1p(np.exp(np.where(turn, -score, score))).sum(axis=1)
        nodes[met] += rate * miss.T @ part
        first = last
    return grad, loss, nodes


@pytest.mark.parametrize("width", [1, 16, 31, 33, 100, 128])
def test_learns_as_numpy_does(width):
    given = case(width, np.float32, [1, 5, 2, LONGEST, 1, 2 * LONGEST + 3, 7])
    for found, expected in zip(step(*given, 0.1), oracle(*given, 0.1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("optimiser", ["row-adagrad", "adagrad"])
def test_a_group_moves_its_rows_by_adagrad(optimiser):
    """Its gradient is measured as a whole, with the bias's."""
    lengths = [1, 5, 2, LONGEST, 1]
    tree, _, hidden, target = case(37, np.float32, lengths)
    rng, rate = np.random.default_rng(3), 0.2
    learned = drawn(rng, CLASSES - 1, 37, optimiser, biases=True)
    weight, expected = rng.random(len(target)).astype(np.float32), copied(learned)
    work = tree_softmax.workspace(*hidden.shape, tree.depth, hidden.dtype)
    grad, loss = np.empty_like(hidden), np.empty(len(target), np.float32)
    tree_softmax.step(grad, loss, learned, work, tree, hidden, target, weight, rate, "grouped")
    lists, ends = [trees.path(tree, int(leaf)) for leaf in target], np.cumsum([0, *lengths])
    wanted = learn_nodes(expected, hidden, lists, weight, rate, list(itertools.pairwise(ends)))
    np.testing.assert_allclose(grad, wanted[0], rtol=0, atol=2e-5)
    np.testing.assert_allclose(loss, wanted[1], rtol=0, atol=2e-5)
    check_close(learned, expected, atol=2e-5)


def test_same_bits_at_any_number_of_threads(threads):
    given = case(40, np.float32, [3, 1, 8, 20, 2, 2, 6] * 5)
    found = step(*given, 0.1)
    numba.set_num_threads(1)
    for array, alone in zip(found, step(*given, 0.1), strict=True):
        assert array.tobytes() == alone.tobytes()


def test_without_neighbours_of_one_target_it_is_the_serial_loop():
    tree, nodes, hidden, _ = case(24, np.float64, [1] * 30)
    target = np.arange(30, dtype=np.int32)
    for grouped, serial in zip(
        *(step(tree, nodes, hidden, target, 0.1, mode) for mode in ("grouped", "deterministic")), strict=True
    ):
        np.testing.assert_allclose(grouped, serial, rtol=0, atol=1e-13)
