"""Nodes of a sparse label tree against logistic regressions fitted one by one, and what of them is kept."""

import numpy as np
import pytest
from scipy import sparse

from cpu import sparse_label_tree
from cpu.sparse_label_tree import solve
from tests.support.sparse_label_trees import BOUND, dense, examples, fitted, positive, shape


def test_every_node_is_fitted_to_the_examples_that_reach_it():
    tree, (x, y) = shape(), examples()
    rows, biases = dense(fitted(tree, x, y), x.shape[1])
    has = positive(tree, y)
    for node in range(tree.up.size):
        members = np.flatnonzero(has[:, tree.up[node]]) if node else np.arange(len(has))
        own, turn = x[members], has[members, node]
        if turn.all() or not turn.any():
            assert (
                biases[node] == pytest.approx(np.log((turn.sum() + 0.5) / ((~turn).sum() + 0.5)))
                and not rows[node].any()
            )
            continue
        w = np.empty(x.shape[1] + 1)
        squares = 1 + own.multiply(own).sum(axis=1).astype(np.float32)
        given = (
            own.indptr.astype(np.int64),
            own.indices,
            own.data,
            squares,
            turn,
            np.full(len(members), BOUND, np.float32),
        )
        solve(w, *given, 1e-3, 1000, np.uint64(9))
        np.testing.assert_allclose([*rows[node], biases[node]], w, atol=1e-2)


def test_the_same_bytes_at_any_number_of_threads_and_in_groups_of_any_size(threads, monkeypatch):
    tree, (x, y) = shape(), examples()
    expected = fitted(tree, x, y)
    monkeypatch.setattr(sparse_label_tree, "GROUP", 100)
    for one, other in zip(expected, fitted(tree, x, y), strict=True):
        assert one.tobytes() == other.tobytes() and one.dtype == other.dtype


def test_small_weights_are_dropped():
    tree, (x, y) = shape(), examples()
    whole, cut = fitted(tree, x, y), fitted(tree, x, y, least=0.5)
    rows, _ = dense(whole, x.shape[1])
    np.testing.assert_array_equal(dense(cut, x.shape[1])[0], np.where(abs(rows) > 0.5, rows, 0))
    assert 0 < cut.weight.size < whole.weight.size and abs(cut.weight).min() > 0.5


def test_wide_nodes_are_cut_into_chunks():
    tree, (x, y) = shape(), examples()
    weights = fitted(tree, x, y)
    assert np.diff(weights.node_at).max() <= sparse_label_tree.CHUNK < np.diff(tree.child_at).max()
    for node in range(tree.up.size):
        chunks = range(weights.first[node], weights.first[node + 1])
        nodes = [n for m in chunks for n in range(weights.node_at[m], weights.node_at[m + 1])]
        assert nodes == list(range(tree.child_at[node], tree.child_at[node + 1]))


def test_labels_and_features_that_no_example_has():
    tree, (x, y) = shape(), examples()
    x, y = sparse.csr_array(x, copy=True), sparse.csr_array(y.toarray() * (np.arange(y.shape[1]) != 5))
    x.data[:] = 0
    x.eliminate_zeros()
    weights = fitted(tree, x, y)
    assert weights.weight.size == 0 and np.isfinite(weights.biases).all() and weights.biases[tree.leaf[5]] < -3
