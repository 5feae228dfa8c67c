"""Ctrl-C at any moment leaves a model between two ticks; a second one breaks off, and the model says so."""

import contextlib
import random
import signal
import sys

import pytest

from hybrid.pvm.model import PVM
from hybrid.schedule.guards import Held
from hybrid.train.stop import Stop
from tests.support import readouts
from tests.support.interrupts import Kills, Lines, drained
from tests.support.small_engine import WAYS, Feed, assert_same_bits, engine, parameters
from tests.support.small_pvm import TINY, Scene, bytes_of, walk

TICKS = 20


@pytest.fixture
def kills(monkeypatch):
    return Kills(monkeypatch)


@pytest.mark.parametrize("way", WAYS)
def test_an_engine_interrupted_at_any_moment_goes_on_to_the_same_bytes(kills, tmp_path, way):
    whole = engine(micro_batches=2, **WAYS[way])
    list(whole.run(Feed(TICKS)))
    rng = random.Random(way)
    trained = engine(micro_batches=2, **WAYS[way])
    while trained.tick < TICKS:
        if kills.during(drained(trained.run(Feed(TICKS))), rng.randrange(1, 40)):
            trained.save(tmp_path)
            assert trained.torn is None
    assert kills.caught >= 3
    assert_same_bits(parameters(trained), parameters(whole))


@pytest.mark.parametrize("way", ["serial", "overlapped"])
def test_a_second_interrupt_breaks_off_and_the_engine_says_so(kills, tmp_path, way):
    trained, kills.times = engine(**WAYS[way]), 2
    ticks = trained.run(Feed(TICKS))
    next(ticks)
    assert kills.during(drained(ticks), 2)
    for refused in (lambda: trained.save(tmp_path), lambda: next(trained.run(Feed(TICKS)))):
        with pytest.raises(ValueError, match=r"engine: tick 1 was aborted by a second interrupt; .*last checkpoint"):
            refused()


@pytest.mark.parametrize("overlap", [True, False])
def test_a_second_interrupt_while_the_feed_is_read_leaves_the_engine_whole(kills, overlap):
    class Slow(Feed):
        def __getitem__(self, tick):
            if tick == 4 and not kills.sent:
                kills.send()
            return super().__getitem__(tick)

    whole, trained, kills.times = engine(), engine(overlap=overlap), 1 if overlap else 2
    list(whole.run(Feed(TICKS)))
    assert kills.during(drained(trained.run(Slow(TICKS))), 0)
    list(trained.run(Slow(TICKS)))
    assert_same_bits(parameters(trained), parameters(whole))


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


# What holds signals back


@pytest.fixture
def received():
    """The signals that a handler of the test's own got."""
    found = []
    before = signal.signal(signal.SIGINT, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGINT, before)


def test_one_signal_waits_and_is_handled_once_at_the_end(received):
    own = signal.getsignal(signal.SIGINT)
    with Held():
        signal.raise_signal(signal.SIGINT)
        assert not received
    assert received == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is own


def test_the_first_interrupt_waits_for_the_second_and_none_is_lost(received):
    with Held():
        for passed_on in (0, 2, 3):
            signal.raise_signal(signal.SIGINT)
            assert len(received) == passed_on
    assert len(received) == 3


def test_the_signal_of_another_rank_is_obeyed_unless_one_was_before():
    with Stop() as stop:
        for number, obeyed in ((0, 0), (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)):
            stop.obey(number)
            assert stop.signal == obeyed
        signal.raise_signal(signal.SIGTERM)  # that of the other rank, which comes to this one too: not the second


def test_while_a_stop_is_open_it_is_told_after_the_tick():
    with Stop() as stop:
        with Held():
            signal.raise_signal(signal.SIGINT)
            assert not stop.signal
        assert stop.signal == signal.SIGINT


@pytest.mark.parametrize("code", [Held.__enter__.__code__, Held.__exit__.__code__])
def test_two_signals_at_any_line_where_it_begins_or_ends_leave_pythons_own_handler(code):
    for at in range(9):
        left = iter(range(at, -1, -1))

        def line(frame, event, argument, left=left):
            if event == "line" and next(left, None) == 0:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            return line

        sys.settrace(lambda frame, event, argument, line=line: line if frame.f_code is code else None)
        try:
            with contextlib.suppress(KeyboardInterrupt), Held():
                pass
        finally:
            sys.settrace(None)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, at


def test_a_signal_while_the_handler_is_put_back_waits_until_it_is(monkeypatch):
    put = signal.signal

    def late(number, handler):
        signal.raise_signal(signal.SIGINT)
        return put(number, handler)

    with pytest.raises(KeyboardInterrupt), Held():
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(signal, "signal", late)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
