"""What rivals of unit collections share: the oracle follows the slope, parts and units are cut where they lie."""

import numpy as np
import pytest

from bench.units_problem import RATE, Problem, ours


def problem(momentum=0.0):
    return Problem(9, 3, momentum, sizes=(4, 3, 2))


def test_the_oracle_moves_down_the_slope():
    found = problem()
    first = found.sampled(found.weights()).astype(float)
    for row, u in enumerate(found.sample):
        slope = [
            _loss(found, u, first[row] + step) - _loss(found, u, first[row] - step)
            for step in 1e-6 * np.eye(found.size)
        ]
        np.testing.assert_allclose(first[row] - found.expected[row], RATE * np.array(slope) / 2e-6, atol=1e-8)


def _loss(problem, u, weights):
    first, first_bias, second, second_bias = np.split(weights, [12, 15, 21])
    x, target = problem.x[:, 4 * u : 4 * u + 4].astype(float), problem.target[:, 2 * u : 2 * u + 2]
    hidden = 1 / (1 + np.exp(-x @ first.reshape(3, 4).T - first_bias))
    y = 1 / (1 + np.exp(-hidden @ second.reshape(2, 3).T - second_bias))
    return ((y - target) ** 2).sum() / 2


def test_parts_are_the_weights_of_all_units():
    found = problem()
    rows = np.concatenate([part.reshape(9, -1) for part in found.parts()], axis=1)
    np.testing.assert_array_equal(rows.ravel(), found.weights())
    x, target = found.by_unit()
    assert x.shape == (9, 3, 4) and target.shape == (9, 3, 2)
    np.testing.assert_array_equal(x[5], found.x[:, 20:24])
    with pytest.raises(AssertionError):
        found.check_parts([part[found.sample] for part in found.parts()])  # a step has not been taken


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_ours_takes_the_oracle_s_step(momentum):
    work = ours(problem(momentum), 1)
    work.run()
    work.check()
