"""Optimisers of dense weights on the CPU: their formulas, the same bits at any threads."""

import numpy as np
import pytest

from cpu import optimiser
from tests.support.optimisers import STATES, Move, Moved, call

SIZE = 3 * optimiser.NUMBERS + 17  # more than a piece, and a last one that is short
MOVE = Move(rate=0.03, scale=1 / 7, decay=0.0)


def arrays(kind, size=SIZE):
    """Weights, a gradient and a state as it is at first."""
    weights, grad = np.random.default_rng(0).normal(size=(2, size)).astype(np.float32)
    return {"weights": weights, "grad": grad} | {name: np.zeros(size, np.float32) for name in STATES[kind]}


def learn(kind, found, grads, move, most=None):
    """Updates with one gradient after another."""
    work = optimiser.workspace(found["weights"].size)
    for turn, grad in enumerate(grads):
        found["grad"][:] = grad
        if most is not None:
            optimiser.clip(work, found["grad"], move.scale, most)
        function, arguments = call(optimiser, kind, found, move._replace(cut=None if most is None else work), turn + 1)
        function(*arguments)
        assert not found["grad"].any()


def gradients(size=SIZE, turns=4):
    return [np.random.default_rng(turn).normal(size=size) for turn in range(turns)]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize(("decay", "most"), [(0.1, None), (0.0, 1.5), (0.1, 1e9)])
def test_every_optimiser_follows_its_formula(kind, decay, most):
    move = MOVE._replace(decay=decay)
    found = arrays(kind)
    expected = Moved(found["weights"])
    learn(kind, found, gradients(), move, most)
    for grad in gradients():
        expected.step(kind, grad.astype(np.float32), move, most)
    unit = 32 * np.finfo(np.float32).eps
    for name in ("weights", *STATES[kind]):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=unit, atol=4 * unit, err_msg=name)


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_the_number_of_threads_does_not_change_a_bit(kind, check_threads):
    def run():
        found = arrays(kind)
        learn(kind, found, gradients(), MOVE, 1.5)
        return found.values()

    check_threads(run)


def test_the_state_of_weights_that_never_move_is_forgotten_before_it_is_denormal():
    found = arrays("adam", size=8)
    grad = np.zeros(8)
    for turn in range(400):
        found["grad"][:] = 1e-3 if turn == 0 else grad
        function, arguments = call(optimiser, "adam", found, MOVE, turn + 1)
        function(*arguments)
    assert not found["mean"].any()  # 0.8^400 is 2e-39
    assert np.isfinite(found["weights"]).all() and (found["squares"] > 0).all()
