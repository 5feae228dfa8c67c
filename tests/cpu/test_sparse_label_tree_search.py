"""The search in a sparse label tree against the probabilities of all labels, computed from a table of its weights."""

import numpy as np
import pytest

from cpu import sparse_label_tree as search
from tests.support.label_trees import log_sigmoid
from tests.support.sparse_label_trees import dense, examples, fitted, shape


@pytest.fixture(scope="module")
def case():
    """Tree, weights, examples of other numbers than it learned from, and the log-probability of each label (B, V)."""
    tree, (x, _) = shape(), examples(seed=1)
    weights = fitted(tree, *examples())
    rows, biases = dense(weights, x.shape[1])
    scores, expected = x.astype(float) @ rows.T + biases, np.zeros((x.shape[0], tree.leaf.size))
    for label, node in enumerate(tree.leaf.tolist()):
        while node >= 0:
            expected[:, label] += log_sigmoid(scores[:, node])
            node = tree.up[node]
    return tree, weights, (x.indptr.astype(np.int64), x.indices, x.data), expected


def found(case, k, *least):
    tree, weights, x, expected = case
    ids, log_probs = np.empty((len(expected), k), np.int32), np.empty((len(expected), k), np.float32)
    search.best(ids, log_probs, tree, weights, *x, *least)
    return ids, log_probs


def test_best_is_the_top_of_everything(case, threads):
    expected = case[-1]
    for k in (1, 3, expected.shape[1]):
        ids, log_probs = found(case, k)
        np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :k], atol=1e-4)
        np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, atol=1e-4)
        assert all(len(set(row)) == k for row in ids.tolist())


def test_labels_below_the_least_do_not_come(case):
    expected = case[-1]
    ids, log_probs = found(case, expected.shape[1], np.log(0.05))
    assert ((ids >= 0).sum(axis=1) == (expected >= np.log(0.05)).sum(axis=1)).all()
    assert ((ids < 0) == np.isneginf(log_probs)).all() and 0 < (ids >= 0).sum() < ids.size


def test_given_labels_are_as_likely_as_the_search_says(case, threads):
    tree, weights, x, expected = case
    labels = np.random.default_rng(0).integers(-1, expected.shape[1], (len(expected), 4)).astype(np.int32)
    some = np.empty(labels.shape, np.float32)
    search.given(some, tree, weights, labels, *x)
    likely = np.take_along_axis(expected, np.maximum(labels, 0), 1)
    np.testing.assert_allclose(some, np.where(labels < 0, -np.inf, likely), atol=1e-4)
    ids, log_probs = found(case, 3)
    search.given(some[:, :3], tree, weights, ids, *x)
    np.testing.assert_array_equal(some[:, :3], log_probs)
