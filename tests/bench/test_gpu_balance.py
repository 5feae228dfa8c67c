"""Clusters make ticks of uneven models even: figures that are exact, with bars."""

import numpy as np
import pytest

from bench.gpu_balance import balance, busiest


def test_blocks_go_where_places_are_at_rest():
    assert busiest(np.array([[5.0], [4.0], [3.0], [3.0]]), 2) == 8  # 5 + 3, 4 + 3
    assert busiest(np.array([[2.0, 2.0], [6.0, 1.0]]), 3) == 8  # the second pair waits for two places


@pytest.mark.parametrize(
    ("config", "before", "after"), [("small", 1.82, 1.17), ("med_exp", 1.30, 1.11), ("med", 1.09, 1.09)]
)
def test_the_busiest_place_is_near_the_mean(config, before, after):
    """Of `med` no unit is more than an even share, so nothing changes."""
    assert before - 0.01 < balance(config, False)[1] <= before
    assert after - 0.01 < balance(config, True)[1] <= after
