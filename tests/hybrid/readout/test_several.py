"""Examples of several targets as examples of one each: their losses and gradients are the means."""

import numpy as np
import pytest

from cpu.device import Device
from hybrid.feeds import Batch
from hybrid.readout import base
from hybrid.schedule.slot import Slot

WIDTH, CLASSES = 3, 5
AT = np.array([0, 2, 2, 3, 7])  # the second example has none
TARGET = np.array([4, 1, 0, 2, 2, 3, 1], np.int32)
WEIGHT = np.array([2, 1, 0.5, 3], np.float32)
HIDDEN = np.random.default_rng(0).normal(size=(4, WIDTH)).astype(np.float32)
CENTRES = np.random.default_rng(1).normal(size=(CLASSES, WIDTH)).astype(np.float32)


def step(grad, hidden, target, weight):
    """The loss is half the squared distance to the centre of the class."""
    miss = hidden - CENTRES[target]
    grad[:] = weight[:, None] * miss
    return float((weight * (miss**2).sum(axis=1) / 2).mean())


class Readout:
    def __init__(self, batch):
        self.batch = batch

    def log_prob(self, hidden, target):
        assert len(hidden) <= self.batch
        return -((hidden - CENTRES[target]) ** 2).sum(axis=1) / 2


def expected():
    """Loss and gradient of every example before its weight, in float64."""
    loss, grad = np.zeros(4), np.zeros((4, WIDTH))
    for b in range(4):
        for target in TARGET[AT[b] : AT[b + 1]]:
            miss, share = HIDDEN[b].astype(float) - CENTRES[target], 1 / (AT[b + 1] - AT[b])
            loss[b] += share * (miss**2).sum() / 2
            grad[b] += share * miss
    return loss, grad


@pytest.mark.parametrize(("batch", "weight"), [(1, WEIGHT), (2, None), (3, WEIGHT), (100, None)])
def test_losses_and_gradients_are_means_over_the_targets_whatever_the_size_of_a_step(batch, weight):
    slot = Slot(4, 0, {"hidden": WIDTH, "grad": WIDTH}, Device(), targets=8)
    slot.fill(0, 0, Batch(None, None, TARGET, weight, target_at=AT), 0, 4)
    slot.hidden[:], slot.grad[:] = HIDDEN, np.nan
    found = base.stepped_targets(step, slot, batch)
    loss, grad = expected()
    times = np.ones(4) if weight is None else weight.astype(float)
    np.testing.assert_allclose(found, (times * loss).mean(), rtol=1e-6)
    np.testing.assert_allclose(slot.grad, times[:, None] * grad, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(base.log_prob(Readout(batch), HIDDEN, TARGET, AT), -loss, rtol=1e-6)


def test_a_micro_batch_takes_the_targets_of_its_examples():
    slot = Slot(2, 0, {"hidden": WIDTH, "grad": WIDTH}, Device(), targets=8)
    slot.fill(0, 1, Batch(None, None, TARGET, WEIGHT, target_at=AT), 2, 4)
    assert slot.target.tolist() == [0, 2, 2, 3, 1] and slot.target_at.tolist() == [0, 1, 5]
    assert slot.weight.tolist() == [0.5, 3] and slot.examples == 5.5  # the example without a target has no weight


def test_examples_without_any_target_have_no_loss():
    slot = Slot(2, 0, {"hidden": WIDTH, "grad": WIDTH}, Device())
    slot.fill(0, 0, Batch(None, None, TARGET[:0], target_at=np.zeros(3, np.int64)), 0, 2)
    slot.hidden[:], slot.grad[:] = 1, np.nan
    assert base.stepped_targets(step, slot, 4) == 0 and not slot.grad.any() and slot.examples == 1
