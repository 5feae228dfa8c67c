"""A full softmax whose classes have more parts than by default; tests/hybrid/readout/test_kinds.py has what readouts share."""

import numpy as np

from hybrid.readout import FullReadout, rebuild


def test_a_full_softmax_of_more_parts_moves_alike_and_is_rebuilt_with_them(threads):
    few, many = (FullReadout(3000, 8, batch=32, parts=parts) for parts in (16, 64))
    assert "parts" not in few.describe()
    again = rebuild(many.describe())
    rng = np.random.default_rng(0)
    for _ in range(3):
        hidden, target = rng.normal(size=(32, 8)).astype(np.float32), rng.integers(0, 3000, 32).astype(np.int32)
        grad, expected = np.empty((2, 32, 8), np.float32)
        few.step(expected, hidden, target)
        again.step(grad.copy(), hidden, target)
        many.step(grad, hidden, target)
        np.testing.assert_allclose(grad, expected, atol=1e-6)
    np.testing.assert_allclose(many.weights, few.weights, atol=1e-6)
    np.testing.assert_array_equal(many.weights, again.weights)
    np.testing.assert_allclose(many.scores(hidden), few.scores(hidden), atol=1e-5)
    assert again.parts == 64
