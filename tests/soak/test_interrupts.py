"""A few points at which Ctrl-C comes, and what would happen without hybrid/interrupt.py."""

import random
from collections import Counter

import pytest

from hybrid.interrupt import Held
from tests.soak.interrupts import USES, Serial, Uses

HOWS = {"goes on", "refuses, and its checkpoint goes on", "is not told, and goes on"}


def test_after_a_ctrl_c_at_any_line_all_goes_on_or_refuses_by_name():
    uses, rng = Uses(), random.Random(0)
    assert {uses.interrupted(rng) for _ in range(16)} <= HOWS


def test_a_second_ctrl_c_is_refused_by_name_or_comes_between_ticks():
    uses, rng = Uses(), random.Random(1)
    found = Counter(uses.interrupted(rng, [(Serial, "run")]) for _ in range(40))
    assert found.keys() <= HOWS and found["refuses, and its checkpoint goes on"]


def test_without_what_holds_signals_back_a_readout_has_made_half_a_step(monkeypatch):
    steps = [(kind, name) for kind, name in USES if getattr(kind, "kind", "") == "mixture" and name == "step"]
    monkeypatch.setattr(Held, "__enter__", lambda self: self)
    uses, rng = Uses(), random.Random(2)
    with pytest.raises(AssertionError, match="a step was made in part"):
        for _ in range(100):
            uses.interrupted(rng, steps)
