"""hybrid/sweep/space.py: what is drawn."""

import numpy as np
import pytest

from hybrid.sweep.space import Choice, Range


@pytest.mark.parametrize("space", [Range(0.013, 0.97), Range(1e-5, 10.0, log=True), Range(2, 5, whole=True)])
def test_draws_lie_in_the_range(space):
    rng = np.random.default_rng(0)
    drawn = [space.draw(rng) for _ in range(2000)]
    assert space.low <= min(drawn) and max(drawn) <= space.high
    assert all(isinstance(value, int if space.whole else float) for value in drawn)


def test_whole_numbers_up_to_both_ends_are_equally_likely():
    rng = np.random.default_rng(1)
    counts = np.bincount([Range(2, 5, whole=True).draw(rng) for _ in range(4000)], minlength=6)
    assert not counts[:2].any()
    assert np.abs(counts[2:] - 1000).max() < 5 * np.sqrt(1000)  # five standard deviations, nearly


def test_a_logarithmic_range_has_as_many_in_each_decade():
    rng = np.random.default_rng(2)
    drawn = np.array([Range(0.001, 1.0, log=True).draw(rng) for _ in range(3000)])
    counts, _ = np.histogram(np.log10(drawn), bins=[-3, -2, -1, 0.001])
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)


def test_a_choice_offers_its_values_alone():
    rng = np.random.default_rng(3)
    assert {Choice(("a", True, 3)).draw(rng) for _ in range(100)} == {"a", True, 3}
