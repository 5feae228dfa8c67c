"""The model finds the constants that made its points, never negative ones, and tells how far off it is."""

import numpy as np
import pytest

from bench.cost_model import Model, fit

PLANTED = {"operations": 2e-11, "bytes": 1e-10, "batches": 3e-5}


def points(count, rng, noise=0.0):
    """Sizes over several decades, and their seconds by the planted constants."""
    made = []
    for _ in range(count):
        amounts = {"operations": 10 ** rng.uniform(3, 11), "bytes": 10 ** rng.uniform(3, 10), "batches": 1.0}
        seconds = sum(PLANTED[name] * amount for name, amount in amounts.items())
        made.append((amounts, seconds * (1 + noise * rng.standard_normal())))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_constants_ten_orders_apart_are_found(seed):
    model = fit(points(12, np.random.default_rng(seed)))
    assert model.constants == pytest.approx(PLANTED, rel=1e-6)
    assert model.worst == pytest.approx(0, abs=1e-6)


def test_what_costs_nothing_has_nothing():
    """Seconds fall with one amount: least squares would make it negative."""
    found = fit([({"a": 1.0, "b": 1.0}, 3.0), ({"a": 2.0, "b": 1.0}, 2.5), ({"a": 3.0, "b": 1.0}, 2.0)])
    assert found.constants["a"] == 0 and 2 < found.constants["b"] < 3


def test_an_error_is_of_a_model_that_has_not_seen_the_point():
    """Two points on a line through 0 and one off it: left out, it is missed by as much as it is off."""
    found = fit([({"a": 1.0}, 1.0), ({"a": 2.0}, 2.0), ({"a": 4.0}, 8.0)])
    assert found.errors[2] == pytest.approx(4 / 8 - 1)
    assert found.error is not None and found.worst is not None and found.error <= found.worst


def test_noise_is_found_in_the_error():
    model = fit(points(40, np.random.default_rng(1), noise=0.1))
    assert model.error == pytest.approx(0.07, abs=0.04)  # the median of a normal deviation is 0.67 of it


def test_a_single_point_has_no_error():
    model = fit([({"a": 2.0}, 1.0)])
    assert model.seconds({"a": 6.0}) == pytest.approx(3) and model.error is None and model.worst is None


def test_no_points_are_refused():
    with pytest.raises(ValueError, match="points: found none"):
        fit([])


def test_a_step_costs_what_its_amounts_do():
    assert Model({"a": 2.0, "b": 3.0}, ()).seconds({"a": 1.0, "b": 10.0}) == 32.0
