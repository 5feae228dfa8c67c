"""Full and sampled readouts: the float64 oracle, what they draw, and what a checkpoint may say."""

import numpy as np
import pytest

from hybrid import GBCE, SGD, NegativeSampling, SampledSoftmax
from hybrid.readout import SampledReadout, TreeReadout, make


def batch(classes, width, rows=32, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, width)).astype(np.float32)
    return np.empty_like(hidden), hidden, rng.integers(0, classes, rows).astype(np.int32)


def test_negatives_follow_the_seed_and_the_tick():
    def weights(seed, skipped):
        readout = SampledReadout(500, 4, loss="logistic", seed=seed, optimiser=SGD(0.1))
        readout.restore({"tick": skipped})
        for at in range(2):
            readout.step(*batch(500, 4, seed=at))
        return readout.weights.tobytes()

    assert weights(1, 0) == weights(1, 0)
    assert len({weights(1, 0), weights(2, 0), weights(1, 1)}) == 3


def test_a_tick_of_a_checkpoint_that_is_none_is_refused():
    for tick in (-1, 2**63, 1.5):
        with pytest.raises(ValueError, match=f"tick: found {tick}, expected a whole number from 0"):
            SampledReadout(50, 4).restore({"tick": tick})


def test_gbce_with_all_classes_as_negatives_is_a_logistic_regression_a_class():
    """Then beta is 1 at any calibration: slopes of the loss, by the formula in float64."""
    readout = SampledReadout(50, 4, optimiser=SGD(0.1), loss=GBCE(50, calibration=0.9))
    assert readout.draws == "uniform"
    grad, hidden, target = batch(50, 4)
    assert readout.step(grad, hidden, target) == pytest.approx(50 * np.log(2), rel=1e-5)
    yes = np.eye(50)[target]
    np.testing.assert_allclose(readout.weights, 0.1 * (yes - 0.5).T @ hidden, atol=1e-5)


@pytest.mark.parametrize("loss", [SampledSoftmax, NegativeSampling, GBCE])
def test_a_sampled_readout_tells_every_class_that_it_moved(loss):
    """Targets and negatives: a forest over the weights searches them exactly until it is built anew."""
    readout = SampledReadout(500, 4, loss=loss(20), optimiser=SGD(0.1))
    readout.step(*batch(500, 4))
    before = readout.weights.copy()
    grad, hidden, target = batch(500, 4, seed=1)
    readout.step(grad, hidden, target)
    changed = np.flatnonzero((readout.weights != before).any(axis=1))
    assert set(changed) <= set(readout.moved) and set(target) <= set(readout.moved)
    assert set(changed) - set(target)
    told, _ = readout.moved, readout.losses(hidden, target)  # which draws too, and moves nothing
    assert readout.moved is told


@pytest.mark.parametrize("kind", [TreeReadout, SampledReadout])
def test_counts_of_a_checkpoint_that_are_none_are_refused(kind):
    readout = kind(np.arange(1, 9), 4)
    readout.parameters()["counts"][3] = np.nan
    with pytest.raises(ValueError, match=r"counts\[3\]: found nan, expected a finite number"):
        readout.restore(readout.state())


def test_a_sampled_readout_is_under_a_trunk_unless_said_otherwise():
    options = {"rate": 0.1, "seed": 0}
    assert make("sampled", np.ones(9), 4, options, batch=4).loss == "softmax"
    assert make("sampled", np.ones(9), 4, options, batch=4, trunk=False).loss == "logistic"
