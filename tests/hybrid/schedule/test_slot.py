"""The buffers of a micro-batch, and its states, which are those of hybrid/schedule/slot.py."""

import numpy as np
import pytest

from cpu.device import Device
from hybrid.feeds import Batch
from hybrid.schedule.slot import Slot


def test_fill_copies_a_part_of_a_batch_of_contexts():
    batch = Batch(np.arange(12, dtype=np.int32), None, np.arange(4, dtype=np.int32))
    slot = Slot(3, 9, {"x": 2}, Device())
    slot.fill(7, 1, batch, 1, 3)
    assert (slot.tick, slot.micro, slot.count, slot.examples) == (7, 1, 2, 4)
    assert slot.ids.tolist() == [3, 4, 5, 6, 7, 8] and slot.target.tolist() == [1, 2] and slot.x.shape == (2, 2)
    batch.ids[:] = 0
    assert slot.ids.tolist() == [3, 4, 5, 6, 7, 8]


def test_fill_cuts_bags_where_they_begin():
    batch = Batch(np.arange(6, dtype=np.int32), np.array([0, 1, 1, 4, 6]), np.arange(4, dtype=np.int32))
    slot = Slot(4, 6, {"x": 2}, Device(), bags=True)
    slot.fill(0, 0, batch, 1, 4)
    assert slot.bag_at.tolist() == [0, 0, 3, 5] and slot.ids.tolist() == [1, 2, 3, 4, 5]


def test_a_slot_goes_round_and_refuses_a_step_out_of_turn_by_name():
    batch = Batch(np.zeros(2, np.int32), None, np.zeros(2, np.int32))
    slot = Slot(2, 2, {"x": 1}, Device())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="found free, cannot become in use"):
            slot.take()
        slot.fill(3, 1, batch, 0, 2)
        with pytest.raises(RuntimeError, match="slot of tick 3, micro-batch 1: found ready, cannot become filling"):
            slot.fill(4, 0, batch, 0, 2)
        with pytest.raises(RuntimeError, match="found ready, cannot become free"):
            slot.release()
        slot.take()
        with pytest.raises(RuntimeError, match="found in use, cannot become filling"):
            slot.fill(4, 0, batch, 0, 2)
        slot.release()
