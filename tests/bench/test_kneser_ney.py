"""Smoothed counts: by hand on a text of seven words, a distribution after any context, better with more context."""

import numpy as np
import pytest

from bench.quality.kneser_ney import FALLBACK, KneserNey


def windows(text, n, words):
    padded = np.concatenate([np.full(n - 1, words), text])
    return np.lib.stride_tricks.sliding_window_view(padded, n)


def test_bigrams_by_hand():
    """Of a b a b a c b, in ids 0 1 0 1 0 2 1: too small to estimate discounts, so they are 1/2, 1 and 3/2."""
    model = KneserNey(windows([0, 1, 0, 1, 0, 2, 1], 2, 3), 3)
    assert [order.discounts.tolist() for order in model.orders] == [[0, *FALLBACK]] * 2
    # Distinct words before 0: the beginning and 1; before 1: 0 and 2; before 2: 0. Discounts of 2, 2 and 1 leave 2.5 of 5.
    lower = (np.array([2 - 1, 2 - 1, 1 - 0.5]) + 2.5 / 3) / 5
    # After 0, three times: 1 twice, 2 once.
    after = (np.array([0, 2 - 1, 1 - 0.5]) + 1.5 * lower) / 3
    np.testing.assert_allclose(model.probabilities(np.array([[0, 0], [0, 1], [0, 2]])), after, rtol=1e-15)


def test_discounts_of_chen_and_goodman():
    """Of a text with 8 words once, 4 twice, 2 three times and 1 four times: Y = 8 / (8 + 2 x 4) = 1/2."""
    text = np.repeat(np.arange(15), [1] * 8 + [2] * 4 + [3] * 2 + [4])
    model = KneserNey(text[:, None], 15)
    np.testing.assert_allclose(model.orders[0].discounts, [0, 1 - 4 / 8, 2 - 1.5 * 2 / 4, 3 - 2 * 1 / 2])


@pytest.mark.parametrize("n", [1, 3, 5])
def test_sums_to_one_after_known_and_unknown_contexts(n):
    rng = np.random.default_rng(0)
    text = np.minimum(rng.geometric(0.2, 600) - 1, 11)
    model = KneserNey(windows(text, n, 12), 12)
    contexts = rng.integers(0, 13, (40, n - 1))
    asked = np.column_stack([np.repeat(contexts, 12, axis=0), np.tile(np.arange(12), 40)])
    found = model.probabilities(asked).reshape(40, 12)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-12)
