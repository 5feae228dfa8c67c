"""The search in a label tree against the probabilities of all labels."""

import numpy as np
import pytest

from cpu import label_tree_search
from cpu.excluded import Excluded
from hybrid.contract import Learned
from tests.support.label_trees import SHAPES, WIDTH, every, examples


@pytest.fixture(params=SHAPES)
def case(request):
    tree = SHAPES[request.param]()
    hidden, _, _ = examples(tree.leaf.size)
    rows = np.random.default_rng(2).normal(size=(tree.up.size, WIDTH))
    return tree, rows.astype(np.float32), hidden.astype(np.float32)


def found(case, k, *more):
    tree, rows, hidden = case
    ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
    label_tree_search.best(ids, log_probs, Learned(rows), tree, hidden, *more)
    return ids, log_probs


def test_best_is_the_top_of_everything(case, threads):
    tree, rows, hidden = case
    expected = every(rows.astype(float), tree, hidden.astype(float))
    for k in (1, 3, tree.leaf.size):
        ids, log_probs = found(case, k)
        np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :k], atol=3e-5)
        np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, atol=3e-5)
        assert all(len(set(row)) == k for row in ids.tolist())


def test_labels_below_the_least_do_not_come(case):
    tree, rows, hidden = case
    expected = every(rows.astype(float), tree, hidden.astype(float))
    ids, log_probs = found(case, tree.leaf.size, np.log(0.05))
    likely = expected >= np.log(0.05)
    assert 0 < likely.sum() < likely.size
    for b in range(len(hidden)):
        assert set(ids[b][ids[b] >= 0]) == set(np.flatnonzero(likely[b]))
    assert ((ids < 0) == np.isneginf(log_probs)).all()


def test_what_is_excluded_does_not_come(case):
    tree, rows, hidden = case
    out = np.array([0, 2, 5], np.int32)
    without = Excluded(np.zeros(len(hidden), np.int64), np.full(len(hidden), 3), out)
    expected = every(rows.astype(float), tree, hidden.astype(float))
    expected[:, out] = -np.inf
    ids, log_probs = found(case, tree.leaf.size, -np.inf, without)
    np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1), atol=3e-5)
    assert (ids[:, -3:] == -1).all() and not np.isin(ids, out).any()
