"""Sparse label trees: shapes, nodes against regressions fitted one by one, the search against all labels, the solver."""

import numpy as np
import pytest
from scipy import optimize, sparse

from cpu import sparse_label_tree
from cpu import sparse_label_tree as search
from cpu.sparse_label_tree import from_parents, solve
from tests.support.sparse_label_trees import BOUND, dense, examples, fitted, positive, shape

PARENTS = [4, 4, 0, 0, -1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 0]  # one to six children, leaves at all levels, no order


@pytest.mark.parametrize("parents", [PARENTS, [-1] + [0] * 23], ids=["uneven", "flat"])
def test_nodes_stand_breadth_first_and_children_together(parents):
    childless = np.setdiff1d(np.arange(len(parents)), parents)
    tree = from_parents(parents, np.random.default_rng(0).permutation(childless))
    nodes = tree.up.size
    assert tree.up[0] == -1 and (np.diff(tree.up) >= 0).all()  # so children rise with their parents
    for node in range(nodes):
        children = np.arange(tree.child_at[node], tree.child_at[node + 1])
        assert (tree.up[children] == node).all() and (tree.label[node] >= 0) == (not len(children))
    assert tree.child_at[0] == 1 and tree.child_at[-1] == nodes
    np.testing.assert_array_equal(tree.label[tree.leaf], np.arange(tree.leaf.size))
    assert {array.dtype for array in tree} == {np.dtype(np.int32)}


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


def test_every_node_is_fitted_to_the_examples_that_reach_it():
    tree, (x, y) = shape(), examples()
    rows, biases = dense(fitted(tree, x, y), x.shape[1])
    has = positive(tree, y)
    for node in range(tree.up.size):
        members = np.flatnonzero(has[:, tree.up[node]]) if node else np.arange(len(has))
        own, turn = x[members], has[members, node]
        if turn.all() or not turn.any():
            assert biases[node] == pytest.approx(np.log((turn.sum() + 0.5) / ((~turn).sum() + 0.5)))
            assert not rows[node].any()
            continue
        w, _ = solved(own, turn, np.full(len(members), BOUND, np.float32), passes=1000, seed=9)
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


@pytest.fixture(scope="module")
def case():
    """Tree, weights, examples of other numbers than it learned from, and the log-probability of each label (B, V)."""
    tree, (x, _) = shape(), examples(seed=1)
    weights = fitted(tree, *examples())
    rows, biases = dense(weights, x.shape[1])
    scores, expected = x.astype(float) @ rows.T + biases, np.zeros((x.shape[0], tree.leaf.size))
    for label, node in enumerate(tree.leaf.tolist()):
        while node >= 0:
            expected[:, label] -= np.logaddexp(0, -scores[:, node])
            node = tree.up[node]
    return tree, weights, (x.indptr.astype(np.int64), x.indices, x.data), expected


def found(case, k):
    tree, weights, x, expected = case
    ids, log_probs = np.empty((len(expected), k), np.int32), np.empty((len(expected), k), np.float32)
    search.best(ids, log_probs, tree, weights, *x)
    return ids, log_probs


def test_best_is_the_top_of_everything(case, threads):
    expected = case[-1]
    for k in (1, 3, expected.shape[1]):
        ids, log_probs = found(case, k)
        np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :k], atol=1e-4)
        np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, atol=1e-4)
        assert all(len(set(row)) == k for row in ids.tolist())


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


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x = sparse.random_array((60, 12), density=0.4, rng=rng, dtype=np.float32, format="csr")
    return x, rng.random(60) < 0.3, rng.choice([0, 0.5, 2, 30], 60).astype(np.float32)


def solved(x, positive, bound, tolerance=1e-3, passes=10_000, seed=3):
    squares = 1 + x.multiply(x).sum(axis=1).astype(np.float32)
    w = np.full(x.shape[1] + 1, np.nan)
    given = x.indptr.astype(np.int64), x.indices, x.data, squares, positive, bound
    return w, solve(w, *given, tolerance, passes, np.uint64(seed))


def loss(w, x, positive, bound):
    score = x @ w[:-1] + w[-1]
    return w @ w / 2 + bound.astype(float) @ np.logaddexp(0, np.where(positive, -score, score))


def test_it_is_the_minimum_of_the_primal(problem):
    w, passes = solved(*problem)
    x, positive, bound = problem
    found = optimize.minimize(loss, np.zeros(13), (x.astype(float), positive, bound), tol=1e-12)
    np.testing.assert_allclose(w, found.x, atol=2e-3)
    assert loss(w, *problem) < found.fun * (1 + 1e-6) and 1 < passes < 10_000


def test_it_ends_when_told_takes_the_passes_that_it_says_and_is_a_function_of_its_seed(problem):
    first, passes = solved(*problem, passes=2)
    assert passes == 2
    np.testing.assert_array_equal(first, solved(*problem, passes=2)[0])
    assert not np.array_equal(first, solved(*problem, passes=2, seed=4)[0])
    w, passes = solved(*problem)
    assert loss(first, *problem) > loss(w, *problem)
    for most in (passes, passes - 1, passes - 2):  # the last one finds nothing to move
        again, found = solved(*problem, passes=most)
        assert found == most and np.array_equal(again, w) == (most > passes - 2)
