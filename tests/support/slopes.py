"""Gradients held to the slopes of a loss, by differences in float64."""

import numpy as np
import pytest

STEP = 1e-5


def check(loss, arrays, gradients, places, atol):
    """loss(*arrays) is a number; of each array, its gradient at some places, tuples of indices."""
    wide = [np.array(array, float) for array in arrays]
    for array, gradient, chosen in zip(wide, gradients, places, strict=True):
        for place in chosen:
            before = array[place]
            array[place] = before + STEP
            above = loss(*wide)
            array[place] = before - STEP
            below = loss(*wide)
            array[place] = before
            assert gradient[place] == pytest.approx((above - below) / (2 * STEP), abs=atol)
