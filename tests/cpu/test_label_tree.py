"""Probabilistic label trees: their shapes, the serial loop in float64, and the search against all probabilities."""

import itertools

import numpy as np
import pytest

from cpu import label_tree
from cpu.label_tree import binary, from_parents
from cpu.tree.tree import huffman, path
from hybrid.contract import Learned
from tests.support.label_trees import SHAPES, WIDTH, every, examples, serial_step, visited


@pytest.fixture(params=SHAPES)
def tree(request):
    return SHAPES[request.param]()


def start(tree):
    return np.random.default_rng(1).normal(size=(tree.up.size, WIDTH)).astype(np.float32)


def given(tree, *more):
    """Examples in float32."""
    hidden, target, target_at = examples(tree.leaf.size, *more)
    return hidden.astype(np.float32), target, target_at


def stepped(rows, tree, hidden, target, target_at, rate):
    length = label_tree.longest(tree, target, target_at)
    work = label_tree.workspace(len(hidden), WIDTH, length, rows.dtype)
    grad, loss = np.full_like(hidden, np.nan), np.full(len(hidden), np.nan, hidden.dtype)
    label_tree.step(grad, loss, Learned(rows), work, tree, hidden, target, target_at, None, rate)
    return loss, grad


def test_a_step_is_the_serial_loop(tree, threads):
    hidden, target, target_at = given(tree)
    ours, expected = start(tree), start(tree).astype(float)
    found = stepped(ours, tree, hidden, target, target_at, 0.3)
    wanted = serial_step(expected, tree, hidden.astype(float), target, target_at, 0.3)
    for one, other in zip((*found, ours), (*wanted, expected), strict=True):
        np.testing.assert_allclose(one, other, atol=3e-5)


@pytest.mark.parametrize("batch", [1, 2 * WIDTH + 1])
def test_losses_are_those_of_a_step_that_moves_nothing(tree, threads, batch):
    hidden, target, target_at = given(tree, batch)
    rows = start(tree)
    work = label_tree.workspace(batch, WIDTH, label_tree.longest(tree, target, target_at), rows.dtype)
    found = np.full(batch + WIDTH, np.nan, np.float32)  # nothing is written behind the last example
    label_tree.losses(found[:batch], Learned(rows), work, tree, hidden, target, target_at)
    np.testing.assert_allclose(found[:batch], stepped(rows, tree, hidden, target, target_at, 0.0)[0], rtol=1e-5)
    assert np.isnan(found[batch:]).all()


def test_no_list_of_nodes_is_longer_than_said(tree):
    _, target, target_at = examples(tree.leaf.size)
    for b, (first, last) in enumerate(itertools.pairwise(target_at)):
        found = len(visited(tree, target[first:last]))
        said = label_tree.longest(tree, target, target_at[b : b + 2])
        assert found == said if last - first < 2 else found <= said <= tree.up.size
    assert label_tree.longest(tree, target[:0], np.zeros(3, int)) == 1


def test_the_oracles_gradient_is_the_slope(tree):
    hidden, target, target_at = examples(tree.leaf.size, 6)
    rows, h = start(tree).astype(float), 1e-6
    _, grad = serial_step(rows, tree, hidden, target, target_at, 0.0)
    for d in range(WIDTH):
        up, down = hidden.copy(), hidden.copy()
        up[:, d] += h
        down[:, d] -= h
        ends = [serial_step(rows, tree, moved, target, target_at, 0.0)[0] for moved in (up, down)]
        np.testing.assert_allclose(grad[:, d], (ends[0] - ends[1]) / (2 * h), atol=1e-7)


def test_log_probabilities_are_sums_along_paths_and_best_is_the_top_of_them(tree, threads):
    hidden, _, _ = given(tree)
    rows, labels = start(tree), tree.leaf.size
    expected = every(rows.astype(float), tree, hidden.astype(float))
    found = np.empty((len(hidden), labels), np.float32)
    label_tree.log_probs(found, Learned(rows), tree, hidden)
    np.testing.assert_allclose(found, expected, atol=3e-5)
    out, repeated = np.empty(len(hidden) * labels, np.float32), np.repeat(hidden, labels, axis=0)
    label_tree.log_prob(out, Learned(rows), tree, repeated, np.tile(np.arange(labels, dtype=np.int32), len(hidden)))
    np.testing.assert_allclose(out.reshape(found.shape), expected, atol=3e-5)
    for k in (1, 3, tree.leaf.size):
        ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        label_tree.best(ids, log_probs, Learned(rows), tree, hidden)
        np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :k], atol=3e-5)
        np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, atol=3e-5)
        assert all(len(set(row)) == k for row in ids.tolist())


def test_nodes_stand_breadth_first_and_children_together(tree):
    nodes = tree.up.size
    assert tree.up[0] == -1 and (np.diff(tree.up) >= 0).all()  # so children rise with their parents
    for node in range(nodes):
        children = np.arange(tree.child_at[node], tree.child_at[node + 1])
        assert (tree.up[children] == node).all() and (tree.label[node] >= 0) == (not len(children))
    assert tree.child_at[0] == 1 and tree.child_at[-1] == nodes
    np.testing.assert_array_equal(tree.label[tree.leaf], np.arange(tree.leaf.size))
    assert {array.dtype for array in tree} == {np.dtype(np.int32)}


def test_a_binary_label_tree_has_the_paths_of_the_tree():
    counts = np.arange(30) ** 2
    tree, labels = huffman(counts), binary(huffman(counts))
    for label in range(30):
        node, length = int(labels.leaf[label]), 0
        while labels.up[node] >= 0:
            node, length = int(labels.up[node]), length + 1
        assert length == len(path(tree, label))


@pytest.mark.parametrize(
    ("parents", "leaf", "message"),
    [
        ([0, 0, 0], [1, 2], "-1 at one root"),
        ([-1, -1, 0], [1, 2], "-1 at one root"),
        ([-1, 0, 3], [1, 2], "-1 at one root"),
        ([-1], [0], "-1 at one root"),
        ([-1, 0, 0], [1], "one label at each of the 2 nodes"),
        ([-1, 0, 0], [1, 1], "one label at each of the 2 nodes"),
        ([-1, 0, 1], [1], "one label at each of the 1 nodes"),
        ([-1, 0, 0, 4, 3, 3], [1, 2, 5], "3 nodes that hang from no root"),
    ],
)
def test_what_is_no_tree_over_the_labels_is_refused(parents, leaf, message):
    with pytest.raises(ValueError, match=message):
        from_parents(parents, leaf)
