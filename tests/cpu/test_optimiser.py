"""Optimisers of dense weights on the CPU: their formulas, the same bits at any threads."""

import numpy as np
import pytest

from cpu import optimiser
from tests.support.host import HOST
from tests.support.optimisers import STATES, Move, check_formula, gradients, learn

SIZE = 3 * optimiser.NUMBERS + 17  # more than a piece, and a last one that is short
MOVE = Move(rate=0.03, scale=1 / 7, decay=0.0)


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize(("decay", "most"), [(0.1, None), (0.0, 1.5), (0.1, 1e9)])
def test_every_optimiser_follows_its_formula(kind, decay, most):
    check_formula(HOST, kind, SIZE, MOVE._replace(decay=decay), most)


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_the_number_of_threads_does_not_change_a_bit(kind, check_threads):
    weights = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    check_threads(lambda: learn(HOST, kind, weights, gradients(SIZE), MOVE, 1.5).values())


def test_the_state_of_weights_that_never_move_is_forgotten_before_it_is_denormal():
    grads = [np.full(8, 1e-3 * (turn == 0), np.float32) for turn in range(400)]
    found = learn(HOST, "adam", np.ones(8, np.float32), grads, MOVE)
    assert not found["mean"].any()  # 0.8^400 is 2e-39
    assert np.isfinite(found["weights"]).all() and (found["squares"] > 0).all()
