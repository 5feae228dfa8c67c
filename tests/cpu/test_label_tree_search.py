"""The search in a label tree against the probabilities of all labels."""

import numpy as np
import pytest

from cpu import label_tree
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
    label_tree.best(ids, log_probs, Learned(rows), tree, hidden, *more)
    return ids, log_probs


def test_best_is_the_top_of_everything(case, threads):
    tree, rows, hidden = case
    expected = every(rows.astype(float), tree, hidden.astype(float))
    for k in (1, 3, tree.leaf.size):
        ids, log_probs = found(case, k)
        np.testing.assert_allclose(log_probs, -np.sort(-expected, axis=1)[:, :k], atol=3e-5)
        np.testing.assert_allclose(np.take_along_axis(expected, ids.astype(int), 1), log_probs, atol=3e-5)
        assert all(len(set(row)) == k for row in ids.tolist())
