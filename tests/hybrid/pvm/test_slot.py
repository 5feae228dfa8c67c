"""Rates and flags of units, and the buffers of a frame under way."""

import dataclasses

import numpy as np

from hybrid import backend
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.slot import FrameInput, FrameSlot, Rates, SlotSizes, TickRates
from hybrid.pvm.wiring import wire

CONFIG = Config(
    grids=((2, 2), (1, 1)),
    block=(2, 2),
    hidden=(3,),
    schedule=((0, None, 0.1, 0.5), (4, 1, 0.2, None), (6, 0, 0.0, 0.0)),
    readout=Readout(hidden=(4,), schedule=((0, 0.3),), start=3),
)


def rates_of(config):
    wiring = wire(config)
    return Rates(wiring.layer, tape_layout(wiring, config), config)


def test_ticks_that_change_nothing_say_so():
    rates = rates_of(CONFIG)
    changed = [tick for tick in range(10) if rates.at(tick, frozen=False).units is not None]
    # 1: from here on something was predicted; 3 to 6: the rate of the next tick or of this one is another
    assert changed == [0, 1, 3, 4, 5, 6]
    rates.forget()
    assert rates.at(10, frozen=False).units is not None


def test_nothing_learns_while_frozen_or_at_a_rate_of_0():
    rates = rates_of(CONFIG)
    assert not rates.at(2, frozen=True).flags.any()
    np.testing.assert_array_equal(rates.at(7, frozen=False).flags[0], [0, 0, 0, 0, 1])
    # layer 0 learns for the last time at 5, and makes nothing ready to learn from at 6
    np.testing.assert_array_equal(rates_of(CONFIG).at(5, frozen=False).flags[:2], [[1] * 5, [0, 0, 0, 0, 1]])


def test_a_change_is_first_learned_from_the_third_frame():
    change = {"wiring": "classic", "unit": "change", "features": ("signal", "derivative"), "predict_steps": 1}
    config = dataclasses.replace(CONFIG, **change)
    assert [rates_of(config).at(tick, frozen=False).flags[0].any() for tick in range(3)] == [False, False, True]


DEVICE = backend.choose("cpu").device
SIZES = SlotSizes(streams=2, frame=12, units=3, heat=4, hidden=5, parts=1)
RATES = TickRates(np.full((2, 3), 0.1), np.ones((2, 3), bool), 0.5)


def filled(slot, tick, dtype=np.uint8, heat=None, rates=RATES, complete=False):
    image = np.full((2, 2, 2, 3), tick, dtype)
    slot.fill(tick, 0, FrameInput(image, heat, complete, rates), 0, 2)
    return image


def test_what_is_filled_is_copied_and_nothing_of_it_stays_in_the_next_tick_but_rates_that_hold_on():
    slot = FrameSlot(SIZES, DEVICE, np.float32)
    heat = np.ones((2, 4), np.float32)
    image = filled(slot, 7, heat=heat, complete=True)
    image[:], heat[:] = 0, 0
    assert (slot.frame == 7).all() and slot.frame.dtype == np.uint8 and slot.frame_dev is slot.frame
    assert (slot.target == 1).all() and slot.supervised and slot.complete
    assert (slot.tick, slot.count, slot.readout_rate) == (7, 2, 0.5)
    assert slot.fresh and (slot.rates == np.float32(0.1)).all() and slot.flags.all()
    slot.take()
    slot.release()
    filled(slot, 1, np.float64, rates=TickRates(None, None, 0.0))
    assert slot.frame.dtype == np.float32 and (slot.frame == 1).all()
    assert not (slot.supervised or slot.complete or slot.fresh)
    assert (slot.rates == np.float32(0.1)).all()
