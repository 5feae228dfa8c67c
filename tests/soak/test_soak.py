"""A seed passes; faults planted in schedule and checkpoints are caught."""

import subprocess
import sys

import pytest

from hybrid.engine import checkpoint
from hybrid.schedule.schedule import Plan, Schedule
from tests.soak.__main__ import Case, replay
from tests.support.imports import ROOT

TICKS = 40
DELAYED = 57  # a seed: three micro-batches, delay 1, a tree


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
        Schedule, "__init__", lambda self, plan, *given, **named: made(self, Plan(*map(dropped, plan)), *given, **named)
    )
    caught()


def test_batches_begun_that_a_checkpoint_forgets_are_caught(monkeypatch):
    monkeypatch.setattr(checkpoint, "kept", lambda sets, route: {})
    caught()


def test_the_command_says_how_to_repeat_a_seed_that_fails():
    code = "import sys, tests.soak.__main__ as soak; soak.held = lambda engine: {'a': repr(id(engine)).encode()}; soak.main()"
    command = [sys.executable, "-c", code, "20", "--first", str(DELAYED), "--each", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert f"seed {DELAYED} fails: python -m tests.soak 1 --first {DELAYED} --each 20" in done.stdout, done.stderr
