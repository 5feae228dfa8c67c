"""A softmax in each cluster against float64; `best` of a whole head: tests/hybrid/readout/test_readouts.py."""

import numpy as np
import pytest

from cpu.output import cluster_softmax, topk
from hybrid.contract import Learned

CLUSTER = np.int32([0, -1, 0, 1, -1, 1, 1, 1, 2, 0, 1])


def case(batch=20, width=5, seed=0):
    rng = np.random.default_rng(seed)
    rows, hidden = rng.normal(size=(9, width)).astype(np.float32), rng.normal(size=(batch, width)).astype(np.float32)
    return rows, hidden, rng.integers(0, len(CLUSTER), batch).astype(np.int32), rng.random(batch).astype(np.float32)


def oracle(rows, hidden, target, weight, rate):
    """grad, loss and rows after a step, example by example."""
    plan = cluster_softmax.plan(CLUSTER)
    old, moved = rows.astype(float), rows.astype(float)
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    for b, v in enumerate(target):
        among = np.flatnonzero(CLUSTER == CLUSTER[v]) if CLUSTER[v] >= 0 else np.array([], int)
        if among.size:
            own = plan.row[among]
            p = np.exp(old[own] @ hidden[b])
            miss = weight[b] * (p / p.sum() - (among == v))
            loss[b] = -weight[b] * np.log((p / p.sum())[among == v][0])
            grad[b] = miss @ old[own]
            moved[own] -= rate * np.outer(miss, hidden[b])
    return grad, loss, moved


def test_rows_lie_cluster_by_cluster():
    plan = cluster_softmax.plan(CLUSTER)
    assert plan.classes.tolist() == [0, 2, 9, 3, 5, 6, 7, 10, 8] and plan.begins.tolist() == [0, 3, 8, 9]
    assert plan.row.tolist() == [0, -1, 1, 3, -1, 4, 5, 6, 8, 2, 7]


@pytest.mark.parametrize("large", [1024, 4, 0])  # classes from which on a cluster is shared by threads
def test_a_step_is_the_float64_oracle(large, threads, monkeypatch):
    monkeypatch.setattr(cluster_softmax, "LARGE", large)
    rows, hidden, target, weight = case()
    expected = oracle(rows, hidden, target, weight, 0.1)
    plan = cluster_softmax.plan(CLUSTER)
    work = cluster_softmax.workspace(25, 5, plan, np.float32)
    grad, loss, before = np.full_like(hidden, np.nan), np.full(20, np.nan, np.float32), np.empty(20, np.float32)
    cluster_softmax.log_prob(before, Learned(rows), work, plan, hidden, target)
    cluster_softmax.step(grad, loss, Learned(rows), work, plan, hidden, target, weight, 0.1)
    for one, other in zip((grad, loss, rows, -before * weight), (*expected, expected[1]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_equally_likely_classes_come_by_rising_number_wherever_they_are():
    """Classes 1 and 4 alone; all products are 0, so a cluster of 1, 2 or 4 classes is divided evenly."""
    plan = cluster_softmax.plan(np.int32([0, -1, 0, 1, -1, 1, 1, 1, 2]))
    learned, hidden = Learned(np.zeros((7, 2), np.float32)), np.ones((2, 2), np.float32)
    slots = np.log(np.float32([[0.125, 0.125, 0.25, 0.25, 0.25], [0.25, 0.0625, 0.125, 0.5, 0.0625]]))
    ids, log_probs = np.empty((2, 6), np.int32), np.empty((2, 6), np.float32)
    without = topk.Excluded(np.int64([0, 3]), np.int64([3, 3]), np.int32([1, 5, 8]))
    given = learned, plan, slots, np.int32([1, 4]), hidden
    cluster_softmax.best(ids, log_probs, *given, topk.none_excluded(2))
    assert ids.tolist() == [[8, 0, 1, 2, 4, 3], [1, 3, 5, 6, 7, 0]]
    cluster_softmax.best(ids, log_probs, *given, without)
    assert ids.tolist() == [[0, 2, 4, 3, 6, 7], [1, 3, 5, 6, 7, 0]]
