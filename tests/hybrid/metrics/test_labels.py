"""Figures of ranked labels, by hand and beside scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse

from hybrid import metrics
from hybrid.metrics import precision

HAS = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]))
IDS = np.array([[1, 2], [3, 0], [0, -1]])


def test_precision_is_the_share_of_hits():
    has, ids = HAS, IDS
    assert precision(ids, has) == pytest.approx((1 + 1 + 0) / 6)
    assert precision(ids[:, :1], has) == pytest.approx(2 / 3)
    assert precision(ids, has, np.array([2.0, 0, 2])) == pytest.approx(0.25)
    assert precision(np.full((3, 1), -1), has) == 0
    with pytest.raises(ValueError, match="no example"):
        precision(ids[:0], has[:0])


def test_recall_and_ndcg_leave_out_who_has_nothing():
    third = 1 / np.log2(3)  # what a hit at rank 2 counts
    assert metrics.recall(IDS, HAS) == pytest.approx((1 / 2 + 1) / 2)
    assert metrics.ndcg(IDS, HAS) == pytest.approx((1 / (1 + third) + 1) / 2)
    assert metrics.ndcg(IDS[:, ::-1], HAS) == pytest.approx((third / (1 + third) + third) / 2)
    assert metrics.recall(IDS, HAS, np.array([3.0, 1, 5])) == pytest.approx((3 / 2 + 1) / 4)
    for figure in (metrics.recall, metrics.ndcg):
        with pytest.raises(ValueError, match="no example that counts has a label"):
            figure(IDS[2:], HAS[2:])


def test_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(0)
    has, scores = rng.integers(0, 2, (20, 6)), rng.permuted(np.tile(np.arange(6.0), (20, 1)), axis=1)
    has[:, 0] = 1
    for k in (1, 3, 6):
        ids = metrics.ranked(scores, k)
        assert metrics.ndcg(ids, sparse.csr_array(has)) == pytest.approx(ndcg_score(has, scores, k=k))


def test_propensity_scored_precision():
    found = metrics.propensities(HAS, a=0.55, b=1.5)
    c = (np.log(3) - 1) * 2.5**0.55
    assert found[0] == pytest.approx(1 / (1 + c * 2.5**-0.55)) and found[2] == pytest.approx(1 / (1 + c * 1.5**-0.55))
    p = np.array([0.5, 0.25, 1, 0.2])  # labels 0, 1 and 3 are worth 2, 4 and 5
    assert metrics.propensity_precision(IDS, HAS, p) == pytest.approx((4 + 5) / (2 + 4 + 5))
    assert metrics.propensity_precision(IDS[:, :1], HAS, p) == pytest.approx((4 + 5) / (4 + 5))
    assert metrics.propensity_precision(IDS, HAS, p, np.array([2.0, 1, 1])) == pytest.approx((8 + 5) / (12 + 5))
    assert metrics.propensity_precision(IDS, HAS, np.ones(4)) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="expected 4 numbers above 0"):
        metrics.propensity_precision(IDS, HAS, p[:3])
    with pytest.raises(ValueError, match="no example that counts has a label"):
        metrics.propensity_precision(IDS[2:], HAS[2:], p)
    with pytest.raises(ValueError, match="expected at least 3"):
        metrics.propensities(HAS[:2])


def test_what_does_not_fit_together():
    with pytest.raises(ValueError, match=r"found ids \(3, 2\) and labels \(2, 4\)"):
        precision(IDS, HAS[:2])
    with pytest.raises(ValueError, match="a label twice"):
        precision(np.array([[1, 1]]), HAS[:1])
