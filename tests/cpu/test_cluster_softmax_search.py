"""What is likely under softmaxes in clusters; that `best` is the head of all is in tests/hybrid/readout/test_readouts.py."""

import numpy as np

from cpu.output import cluster_softmax, head_parts, topk
from hybrid.contract import Learned


def test_equally_likely_classes_come_by_rising_number_wherever_they_are():
    """Classes 1 and 4 alone; all products are 0, so a cluster of 1, 2 or 4 classes is divided evenly."""
    plan = cluster_softmax.plan(np.int32([0, -1, 0, 1, -1, 1, 1, 1, 2]))
    learned, hidden = Learned(np.zeros((7, 2), np.float32)), np.ones((2, 2), np.float32)
    slots = np.log(np.float32([[0.125, 0.125, 0.25, 0.25, 0.25], [0.25, 0.0625, 0.125, 0.5, 0.0625]]))
    ids, log_probs = np.empty((2, 6), np.int32), np.empty((2, 6), np.float32)
    without = topk.Excluded(np.int64([0, 3]), np.int64([3, 3]), np.int32([1, 5, 8]))
    given = learned, plan, slots, np.int32([1, 4]), hidden
    head_parts.best_by_softmaxes(ids, log_probs, *given, topk.none_excluded(2))
    assert ids.tolist() == [[8, 0, 1, 2, 4, 3], [1, 3, 5, 6, 7, 0]]
    head_parts.best_by_softmaxes(ids, log_probs, *given, without)
    assert ids.tolist() == [[0, 2, 4, 3, 6, 7], [1, 3, 5, 6, 7, 0]]


def test_the_scores_of_a_cluster_sum_to_one_and_of_classes_alone_are_zero(threads):
    rng = np.random.default_rng(0)
    plan = cluster_softmax.plan(np.int32([1, -1, 0, 1, 1]))
    rows, hidden = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(70, 3)).astype(np.float32)
    out = np.full((70, 5), np.nan, np.float32)
    head_parts.scores(out, Learned(rows), plan, hidden)
    assert not out[:, [1, 2]].any()
    p = np.exp(hidden @ rows[1:].T)
    np.testing.assert_allclose(np.exp(out[:, [0, 3, 4]]), p / p.sum(axis=1, keepdims=True), atol=1e-5)
