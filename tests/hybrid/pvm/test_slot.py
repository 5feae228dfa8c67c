"""A slot takes a copy of what it is filled with, and nothing of the tick before."""

import numpy as np

from hybrid import backend
from hybrid.pvm.slot import FrameInput, FrameSlot, SlotSizes, TickRates

DEVICE = backend.choose("cpu").device
SIZES = SlotSizes(streams=2, frame=12, units=3, heat=4, hidden=5, parts=1)
RATES = TickRates(np.full((2, 3), 0.1), np.ones((2, 3), bool), 0.5)


def filled(slot, tick, dtype=np.uint8, heat=None, rates=RATES, complete=False):
    image = np.full((2, 2, 2, 3), tick, dtype)
    slot.fill(tick, 0, FrameInput(image, heat, complete, rates), 0, 2)
    return image


def again(slot):
    slot.take()
    slot.release()


def test_what_is_filled_is_copied():
    slot = FrameSlot(SIZES, DEVICE, np.float32)
    heat = np.ones((2, 4), np.float32)
    image = filled(slot, 7, heat=heat, complete=True)
    image[:], heat[:] = 0, 0
    assert (slot.frame == 7).all() and slot.frame.dtype == np.uint8 and slot.frame_dev is slot.frame
    assert (slot.target == 1).all() and slot.supervised and slot.complete
    assert (slot.tick, slot.count, slot.readout_rate) == (7, 2, 0.5)
    assert slot.fresh and (slot.rates == np.float32(0.1)).all() and slot.flags.all()


def test_nothing_stays_of_the_tick_before_but_rates_that_hold_on():
    slot = FrameSlot(SIZES, DEVICE, np.float32)
    filled(slot, 0, heat=np.ones((2, 4), np.float32), complete=True)
    again(slot)
    filled(slot, 1, np.float64, rates=TickRates(None, None, 0.0))
    assert slot.frame.dtype == np.float32 and (slot.frame == 1).all()
    assert not (slot.supervised or slot.complete or slot.fresh)
    assert (slot.rates == np.float32(0.1)).all()
