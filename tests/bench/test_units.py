"""What rivals of unit collections share: padded parts and signals are those of the units; ours takes the oracle's step."""

import numpy as np
import pytest

from bench.step.units import OFF, Problem, by_unit, equal, padded, unpadded
from hybrid.units import unit_layout


def test_parts_are_the_weights_of_all_units():
    problem = Problem(equal(9, (4, 3, 2)), 3, 0.0)
    parts = padded(problem.layout, problem.weights())
    rows = np.concatenate([part.reshape(9, -1) for part in parts], axis=1)
    np.testing.assert_array_equal(rows.ravel(), problem.weights())
    x = by_unit(problem.x, problem.layout.x_at)
    assert x.shape == (9, 3, 4)
    np.testing.assert_array_equal(x[5], problem.x[:, 20:24])
    with pytest.raises(AssertionError):  # a step has not been taken
        problem.check(unpadded(problem, [part[problem.sample] for part in parts]))


def test_units_of_many_sizes_are_padded_with_what_learns_nothing():
    layout = unit_layout([1, 2], [2, 1], [1, 1])
    first, first_bias, second, second_bias = padded(layout, np.arange(1, 13, dtype=np.float32))
    assert first.tolist() == [[[1, 0], [2, 0]], [[8, 9], [0, 0]]] and first_bias.tolist() == [[[3, 4]], [[10, OFF]]]
    assert second.tolist() == [[[5, 6]], [[11, 0]]] and second_bias.tolist() == [[[7]], [[12]]]
    assert by_unit(np.array([[1, 2, 3]]), layout.x_at, 9).tolist() == [[[1, 9]], [[2, 3]]]
