"""Probabilistic label trees against the serial loop in float64."""

import itertools

import numpy as np
import pytest

from cpu import label_tree
from hybrid.contract import Learned
from tests.support.label_trees import SHAPES, WIDTH, every, examples, flat, serial_step, visited


@pytest.fixture(params=SHAPES)
def tree(request):
    return SHAPES[request.param]()


def start(tree, seed=1):
    return np.random.default_rng(seed).normal(size=(tree.up.size, WIDTH))


def stepped(rows, tree, hidden, target, target_at, rate):
    length = label_tree.longest(tree, target, target_at)
    work = label_tree.workspace(len(hidden), WIDTH, length, rows.dtype)
    grad, loss = np.full_like(hidden, np.nan), np.full(len(hidden), np.nan, hidden.dtype)
    label_tree.step(grad, loss, Learned(rows), work, tree, hidden, target, target_at, None, rate)
    return loss, grad


def test_a_step_is_the_serial_loop(tree, threads):
    hidden, target, target_at = examples(tree.leaf.size)
    ours, expected = start(tree), start(tree)
    for one, other in zip(
        stepped(ours, tree, hidden, target, target_at, 0.3),
        serial_step(expected, tree, hidden, target, target_at, 0.3),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-11)
    np.testing.assert_allclose(ours, expected, atol=1e-11)


@pytest.mark.parametrize("batch", [1, 2 * WIDTH + 1])
def test_losses_are_those_of_a_step_that_moves_nothing(tree, threads, batch):
    hidden, target, target_at = examples(tree.leaf.size, batch)
    rows = start(tree)
    work = label_tree.workspace(batch, WIDTH, label_tree.longest(tree, target, target_at), rows.dtype)
    found = np.full(batch + WIDTH, np.nan)  # nothing is written behind the last example
    label_tree.losses(found[:batch], Learned(rows), work, tree, hidden, target, target_at)
    np.testing.assert_allclose(found[:batch], stepped(rows, tree, hidden, target, target_at, 0.0)[0], atol=1e-11)
    assert np.isnan(found[batch:]).all()


def test_no_list_of_nodes_is_longer_than_said(tree):
    _, target, target_at = examples(tree.leaf.size)
    for b, (first, last) in enumerate(itertools.pairwise(target_at)):
        found = len(visited(tree, target[first:last]))
        said = label_tree.longest(tree, target, target_at[b : b + 2])
        assert found == said if last - first < 2 else found <= said <= tree.up.size
    assert label_tree.longest(tree, target[:0], np.zeros(3, int)) == 1


def test_the_gradient_is_the_slope(tree):
    hidden, target, target_at = examples(tree.leaf.size, 6)
    rows, h = start(tree), 1e-6
    _, grad = stepped(rows, tree, hidden, target, target_at, 0.0)
    for d in range(WIDTH):
        up, down = hidden.copy(), hidden.copy()
        up[:, d] += h
        down[:, d] -= h
        ends = [stepped(rows, tree, moved, target, target_at, 0.0)[0] for moved in (up, down)]
        np.testing.assert_allclose(grad[:, d], (ends[0] - ends[1]) / (2 * h), atol=1e-7)


def test_the_same_bits_at_any_number_of_threads(tree):
    import numba

    found = set()
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        rows = start(tree).astype(np.float32)
        hidden, target, target_at = examples(tree.leaf.size)
        loss, grad = stepped(rows, tree, hidden.astype(np.float32), target, target_at, np.float32(0.3))
        found.add((rows.tobytes(), loss.tobytes(), grad.tobytes()))
    assert len(found) == 1


def test_a_flat_tree_under_a_sure_root_is_one_against_the_rest():
    """Each label is then a logistic regression of its own, and its probability the product with the root's."""
    tree = flat(5)
    rows, hidden = start(tree), np.random.default_rng(0).normal(size=(9, WIDTH))
    out = np.empty((9, 5))
    label_tree.log_probs(out, Learned(rows), tree, hidden)
    scores = hidden @ rows.T
    expected = 1 / (1 + np.exp(-scores[:, tree.leaf])) / (1 + np.exp(-scores[:, :1]))
    np.testing.assert_allclose(np.exp(out), expected, atol=1e-12)


def test_log_probabilities_are_sums_along_paths(tree, threads):
    hidden, _, _ = examples(tree.leaf.size)
    rows, labels = start(tree), tree.leaf.size
    expected, found = every(rows, tree, hidden), np.empty((len(hidden), labels))
    label_tree.log_probs(found, Learned(rows), tree, hidden)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    out, repeated = np.empty(len(hidden) * labels), np.repeat(hidden, labels, axis=0)
    label_tree.log_prob(out, Learned(rows), tree, repeated, np.tile(np.arange(labels, dtype=np.int32), len(hidden)))
    np.testing.assert_allclose(out.reshape(found.shape), expected, atol=1e-11)
