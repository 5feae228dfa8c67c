"""Rates and flags of units; the buffers of a frame under way are tested with runs, in test_model.py."""

import dataclasses

import numpy as np

from hybrid.pvm.config import Config, Readout
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.slot import Rates
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
