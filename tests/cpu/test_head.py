"""The head of a readout: a softmax over slots, how large it is for a share of the time, and how it begins by vectors."""

import numpy as np

from cpu import head
from cpu.head import choose, cost
from cpu.output import cluster_softmax
from hybrid.contract import Learned
from tests.support.heads import case
from tests.support.softmaxes import check_step


def test_a_step_is_the_float64_oracle(threads):
    slot, rows, hidden, target, grad = case()
    given = rows.copy(), hidden, slot[target]
    work, loss = head.workspace(20, 5, np.float32), np.empty(12, np.float32)
    before = np.empty(12, np.float32)
    head.log_prob(before, Learned(rows), work, slot, hidden, target)
    head.step(grad, loss, Learned(rows), work, slot, hidden, target, None, 0.1)
    check_step((grad - 1, loss, rows), *given)
    np.testing.assert_allclose(-before, loss, atol=1e-5)


COUNTS = np.array([1, 4, 1, 2])  # by falling frequency a half, a quarter, two eighths


def test_what_a_step_costs():
    np.testing.assert_allclose(cost(COUNTS, np.array([0, 2, 4]), np.array([2, 1, 0])), [2 + 2, 3 + 0.5, 4])


def test_without_clusters_or_for_all_of_the_time_all_classes_are_alone():
    for share in (1e-3, 0.5, 1.0):
        assert choose(COUNTS, share, None, 0) == choose(COUNTS, share, 4, 0) == (4, 0)
    assert choose(COUNTS, 1.0, None, None) == (4, 0)


def test_the_largest_head_for_the_share_is_taken():
    counts = 1e6 / np.arange(1, 20001)
    before = 0
    for share in (0.02, 0.1, 0.5):
        alone, clusters = choose(counts, share, None, None)
        more = cost(counts, np.array([alone, alone + 1]), np.array([clusters, clusters]))
        assert more[0] <= share * 20000 < more[1] + 2 and alone > before
        assert clusters == round(np.sqrt(20000 - alone))
        before = alone


def test_a_softmax_begins_with_the_vectors_of_its_classes():
    plan = cluster_softmax.plan(np.int32([-1, 0, 0, 1]))
    top, tail = (Learned(np.zeros((3, 1), np.float32), np.zeros(3, np.float32)) for _ in range(2))
    vectors = np.float32([[1], [5], [10], [100]])
    head.begin(top, tail, 1, vectors, plan, np.array([1.0, 2, 3, 4]))
    np.testing.assert_allclose(top.rows[1:, 0], [8, 100], rtol=1e-6)
    np.testing.assert_array_equal(tail.rows, vectors[1:])
    np.testing.assert_allclose(top.biases, [0, np.log(2), 0], rtol=1e-6)
