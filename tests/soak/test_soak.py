"""A seed passes; so do a PVM and readouts after a Ctrl-C at any line; faults planted in schedule and checkpoints are caught."""

import contextlib
import random
import signal
import subprocess
import sys

import pytest

from hybrid.engine import checkpoint
from hybrid.pvm.model import PVM
from hybrid.schedule.guards import Held
from hybrid.schedule.schedule import Plan, Schedule
from tests.soak.__main__ import Case, replay
from tests.support import readouts
from tests.support.imports import ROOT
from tests.support.interrupts import Lines, drained
from tests.support.small_pvm import TINY, Scene, bytes_of, walk

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


# Ctrl-C before any line of the package


@pytest.mark.parametrize("how", ["run", "step"])
def test_a_pvm_goes_on_after_ctrl_c_at_any_line_or_refuses_by_name(tmp_path, how):
    feed, rng, refused = Scene(8), random.Random(how), 0

    def work(model):
        drained(model.run(feed))() if how == "run" else walk(model, feed)
        model.prediction()
        model.receptive_field(1, 0)
        model.save(tmp_path)

    def begun():
        model = PVM(TINY, device="cpu", threads=1)
        walk(model, feed, 2)
        model.save(tmp_path)
        return model

    whole = begun()
    with Lines() as counted:
        work(whole)
    for turn in range(40):
        model, first = begun(), rng.randint(1, counted.count)
        at = [first, first + rng.randint(1, 30)]  # a second one breaks off what the first waits for
        with contextlib.suppress(KeyboardInterrupt), Lines(*at[: 1 + turn % 2]):
            work(model)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        saved, _ = PVM.load(tmp_path, device="cpu", threads=1)
        if model.torn:
            refused += 1
            with pytest.raises(ValueError, match="load the last checkpoint"):
                model.save(tmp_path)
        for one in [saved] if model.torn else [saved, model]:
            walk(one, feed)
            assert bytes_of(one) == bytes_of(whole)
    assert refused


def step_and_ask(kind, turns=6):
    """A readout beside one without interrupts; AssertionError where a step is neither made nor not made."""
    readout, whole, rng = readouts.MAKE[kind](), readouts.MAKE[kind](), random.Random(kind)
    for turn in range(turns):
        before, asked = readouts.frozen(whole), readouts.batch()[1]
        with Lines() as counted:
            readouts.train(whole, 1, turn)
            whole.best(asked, 3)
        with contextlib.suppress(KeyboardInterrupt), Lines(rng.randint(1, counted.count)):
            readouts.train(readout, 1, turn)
            readout.best(asked, 3)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if readouts.frozen(readout) == before:
            readouts.train(readout, 1, turn)
        assert readouts.frozen(readout) == readouts.frozen(whole), "a step was made in part"


@pytest.mark.parametrize("kind", readouts.MAKE)
def test_a_step_of_a_readout_is_made_or_not_after_ctrl_c_at_any_line(kind):
    step_and_ask(kind)


def test_without_what_holds_signals_back_a_readout_has_made_half_a_step(monkeypatch):
    monkeypatch.setattr(Held, "__enter__", lambda self: self)
    with pytest.raises(AssertionError, match="a step was made in part"):
        step_and_ask("mixture", turns=100)
