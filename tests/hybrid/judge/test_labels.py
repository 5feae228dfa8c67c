"""precision@k."""

import numpy as np
import pytest
from scipy import sparse

from hybrid.judge.labels import precision


def test_precision_is_the_share_of_hits():
    has = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]))
    ids = np.array([[1, 2], [3, 0], [0, -1]])
    assert precision(ids, has) == pytest.approx((1 + 1 + 0) / 6)
    assert precision(ids[:, :1], has) == pytest.approx(2 / 3)
    assert precision(ids, has, np.array([2.0, 0, 2])) == pytest.approx(0.25)
    assert precision(np.full((3, 1), -1), has) == 0
    with pytest.raises(ValueError, match="no example"):
        precision(ids[:0], has[:0])
