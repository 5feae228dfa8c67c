"""Examples of several targets as examples of one each: their losses and gradients are the means."""

import numpy as np
import pytest

from cpu.device import Device
from hybrid import SGD
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, base
from hybrid.schedule.slot import Slot

WIDTH, CLASSES = 3, 5
AT = np.array([0, 2, 2, 3, 7])  # the second example has none
TARGET = np.array([4, 1, 0, 2, 2, 3, 1], np.int32)
WEIGHT = np.array([2, 1, 0.5, 3], np.float32)
HIDDEN = np.random.default_rng(0).normal(size=(4, WIDTH)).astype(np.float32)


def filled(target, at, weight=None):
    slot = Slot(4, 0, {"hidden": WIDTH, "grad": WIDTH}, Device(), targets=8)
    slot.fill(0, 0, Batch(None, None, target, weight, target_at=at), 0, 4)
    slot.hidden[:], slot.grad[:] = HIDDEN, np.nan
    return slot


def expected(rows):
    """Loss and gradient of every example before its weight, in float64."""
    loss, grad = np.zeros(4), np.zeros((4, WIDTH))
    for b in range(4):
        p = np.exp(rows @ HIDDEN[b].astype(float))
        p /= p.sum()
        for target in TARGET[AT[b] : AT[b + 1]]:
            loss[b] -= np.log(p[target]) / (AT[b + 1] - AT[b])
            grad[b] += (p @ rows - rows[target]) / (AT[b + 1] - AT[b])
    return loss, grad


@pytest.mark.parametrize(("batch", "weight"), [(1, WEIGHT), (2, None), (3, WEIGHT), (100, None)])
def test_losses_and_gradients_are_means_over_the_targets_whatever_the_size_of_a_step(batch, weight):
    readout, slot = FullReadout(CLASSES, WIDTH, batch=batch, optimiser=SGD(0.0)), filled(TARGET, AT, weight)
    readout.weights[:] = np.random.default_rng(1).normal(size=(CLASSES, WIDTH))
    readout.step_slot(slot)
    loss, grad = expected(readout.weights.astype(float))
    times = np.ones(4) if weight is None else weight.astype(float)
    np.testing.assert_allclose(slot.loss, (times * loss).mean(), rtol=1e-6)
    np.testing.assert_allclose(slot.grad, times[:, None] * grad, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(base.log_prob(readout, HIDDEN, TARGET, AT), -loss, rtol=1e-6)


def test_examples_without_any_target_have_no_loss_and_what_is_not_finite_has_diverged():
    readout, slot = FullReadout(CLASSES, WIDTH), filled(TARGET[:0], np.zeros(5, np.int64))
    readout.step_slot(slot)
    assert slot.loss == 0 and not slot.grad.any() and slot.examples == 1
    slot.hidden[2, 1] = np.nan
    with pytest.raises(FloatingPointError, match=r"hidden\[2\]: found NaN or infinity"):
        readout.step_slot(slot)
