"""A seed passes, and so do interrupts at a few lines; faults planted in the schedule and in checkpoints are caught."""

import random
import subprocess
import sys
from collections import Counter

import pytest

from hybrid.engine import checkpoint
from hybrid.schedule.guards import Held
from hybrid.schedule.schedule import Plan, Schedule
from tests.soak.__main__ import Case, replay
from tests.soak.interrupts import USES, OfModel, interrupted
from tests.support.imports import ROOT

TICKS = 40
DELAYED = 57  # a seed: three micro-batches, delay 1, a tree
HOWS = {"goes on", "refuses, and its checkpoint goes on", "is not told, and goes on"}


def test_all_ways_of_an_engine_give_the_numbers_of_the_serial_run():
    assert replay(Case(DELAYED, TICKS)) >= 3 * TICKS


def caught():
    with pytest.raises((AssertionError, FloatingPointError)):
        replay(Case(DELAYED, TICKS))


@pytest.mark.parametrize("stage", ["forward", "backward"])
def test_a_wait_that_is_dropped_is_caught(monkeypatch, stage):
    def dropped(stages):
        return [one._replace(after=()) if one.name == stage else one for one in stages]

    made = Schedule.__init__
    monkeypatch.setattr(
        Schedule,
        "__init__",
        lambda self, plan, *given, **named: made(self, Plan(*map(dropped, plan)), *given, **named),
    )
    caught()


def test_micro_batches_in_another_order_are_caught(monkeypatch):
    put = Schedule._put
    monkeypatch.setattr(Schedule, "_put", lambda self, stages, slots: put(self, stages, slots[::-1]))
    caught()


def test_batches_begun_that_a_checkpoint_forgets_are_caught(monkeypatch):
    monkeypatch.setattr(checkpoint, "kept", lambda sets, route: {})
    caught()


def test_the_command_says_how_to_repeat_a_seed_that_fails():
    code = "import sys, tests.soak.__main__ as soak; soak.held = lambda engine: {'a': repr(id(engine)).encode()}; soak.main()"
    command = [sys.executable, "-c", code, "20", "--first", str(DELAYED), "--each", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert f"seed {DELAYED} fails: python -m tests.soak 1 --first {DELAYED} --each 20" in done.stdout, done.stderr


def test_after_a_ctrl_c_at_any_line_all_goes_on_or_refuses_by_name():
    rng = random.Random(0)
    assert {interrupted(rng) for _ in range(12)} <= HOWS


def test_a_second_ctrl_c_is_refused_by_name_or_comes_between_ticks():
    rng = random.Random(1)
    found = Counter(interrupted(rng, [(OfModel, "serial", "run")]) for _ in range(40))
    assert found.keys() <= HOWS and found["refuses, and its checkpoint goes on"]


def test_without_what_holds_signals_back_a_readout_has_made_half_a_step(monkeypatch):
    steps = [(make, kind, name) for make, kind, name in USES if kind == "mixture" and name == "step"]
    monkeypatch.setattr(Held, "__enter__", lambda self: self)
    rng = random.Random(2)
    with pytest.raises(AssertionError, match="a step was made in part"):
        for _ in range(100):
            interrupted(rng, steps)
