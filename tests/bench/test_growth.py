"""The line through times that grow with the logarithm of the number of classes."""

import numpy as np
import pytest

from bench.growth import fit


def test_a_straight_line_is_found_and_the_largest_miss_is_told():
    along = np.array([3.0, 4.0, 5.0, 6.0])
    assert fit(along, 20 + 5 * along) == pytest.approx((20, 5, 0))
    bent = fit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 1.0]))  # 2 + 0 x: twice what 1 is
    assert bent == pytest.approx((2, 0, 1))
