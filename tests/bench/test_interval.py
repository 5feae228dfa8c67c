"""Intervals: fixed numbers every time, where the medians of resampled turns lie."""

import itertools
import statistics

import numpy as np
import pytest

from bench import interval


def test_the_interval_of_a_median_by_counting_all_resamples():
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    medians = sorted(statistics.median(drawn) for drawn in itertools.product(values, repeat=5))
    expected = [medians[round(share * len(medians))] for share in (0.025, 0.975)]
    assert interval.of_median(values) == expected == [1.0, 16.0]
    assert interval.of_median(values) == interval.of_median(values)


def test_a_hundred_samples_leave_less_open():
    values = np.random.default_rng(0).normal(10, 1, 100)
    low, high = interval.of_median(values)
    assert low < np.median(values) < high and 0.2 < high - low < 0.8  # 2 x 1.96 x 1.25 / sqrt(100) = 0.5


def test_equal_samples_have_no_width():
    assert interval.of_median([3.0] * 5) == [3.0, 3.0]
    assert interval.of_ratio([6.0] * 5, [3.0] * 7) == [2.0, 2.0]


def test_the_interval_of_a_ratio_is_that_of_both():
    over, under = [8.5, 9.0, 9.5, 10.0, 10.5, 11.0, 11.5], [3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5]
    low, high = interval.of_ratio(over, under)
    alone = [10 / end for end in reversed(interval.of_median(under))]
    assert low < alone[0] < 2 < alone[1] < high


@pytest.mark.parametrize("few", [[], [1.0]])
def test_fewer_than_two_samples_leave_it_open(few):
    assert interval.of_median(few) is None
    assert interval.of_ratio([1.0, 2.0], few) is None
