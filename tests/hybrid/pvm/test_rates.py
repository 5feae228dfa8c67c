"""Rates and flags of units: who learns at a tick, and which ticks change nothing."""

import dataclasses

import numpy as np

from hybrid.pvm.config import Config, Readout
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.rules import wire
from hybrid.pvm.slot import Rates

CONFIG = Config(
    grids=((2, 2), (1, 1)),
    block=(2, 2),
    hidden=(3,),
    schedule=((0, None, 0.1, 0.5), (4, 1, 0.2, None), (6, 0, 0.0, 0.0)),
    readout=Readout(hidden=(4,), schedule=((0, 0.3),), start=3),
)


def made(config):
    wiring = wire(config)
    return Rates(wiring.layer, tape_layout(wiring, config), config)


def test_ticks_that_change_nothing_say_so():
    rates = made(CONFIG)
    changed = [tick for tick in range(10) if rates.at(tick, CONFIG, frozen=False).units is not None]
    # 1: from here on something was predicted; 3 to 6: the rate of the next tick or of this one is another
    assert changed == [0, 1, 3, 4, 5, 6]
    rates.forget()
    assert rates.at(10, CONFIG, frozen=False).units is not None


def test_nothing_learns_while_frozen_or_at_a_rate_of_0():
    rates = made(CONFIG)
    assert not rates.at(2, CONFIG, frozen=True).flags.any()
    np.testing.assert_array_equal(rates.at(7, CONFIG, frozen=False).flags[0], [0, 0, 0, 0, 1])
    # layer 0 learns for the last time at 5, and makes nothing ready to learn from at 6
    np.testing.assert_array_equal(made(CONFIG).at(5, CONFIG, frozen=False).flags[:2], [[1] * 5, [0, 0, 0, 0, 1]])


def test_a_change_is_first_learned_from_the_third_frame():
    config = dataclasses.replace(
        CONFIG, wiring="classic", unit="change", features=("signal", "derivative"), predict_steps=1
    )
    assert [made(config).at(tick, config, frozen=False).flags[0].any() for tick in range(3)] == [False, False, True]


def test_readouts_learn_from_their_start_on_and_not_while_frozen():
    rates = made(CONFIG)
    found = [rates.at(tick, CONFIG, frozen).readout for tick, frozen in ((2, False), (3, False), (4, True))]
    assert found == [0, 0.3, 0]
