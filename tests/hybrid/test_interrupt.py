"""Ctrl-C at any moment leaves a model between two ticks; a second one breaks off, and the model says so."""

import itertools
import random
import signal
import threading

import numpy as np
import pytest

from hybrid.engine import Engine
from hybrid.interrupt import Held
from hybrid.pvm.model import PVM
from hybrid.readout import FullReadout
from hybrid.train.stop import Stop
from tests.support.interrupts import Kills, drained
from tests.support.small_engine import CLASSES, Feed, engine, parameters
from tests.support.small_pvm import TINY, Scene, bytes_of, walk

TICKS = 20


@pytest.fixture
def kills(monkeypatch):
    return Kills(monkeypatch)


def assert_same_model(found, expected):
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


WAYS = {
    "serial": {"overlap": False},
    "overlapped": {"overlap": True},
    "measured": {"overlap": None, "threads": 4},
    "delay": {"overlap": True, "delay": 2},
    "serial, delay": {"overlap": False, "delay": 2},
}


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
    assert_same_model(parameters(trained), parameters(whole))


@pytest.mark.parametrize("how", ["run", "step"])
def test_a_pvm_interrupted_at_any_moment_goes_on_to_the_same_bytes(kills, tmp_path, how):
    whole, model, feed, rng = PVM(TINY), PVM(TINY), Scene(TICKS), random.Random(how)
    walk(whole, feed)
    while model.step_number < TICKS:
        work = drained(model.run(feed)) if how == "run" else lambda: walk(model, feed)
        if kills.during(work, rng.randrange(1, 16)):
            model.save(tmp_path)
    assert kills.caught >= 3
    assert bytes_of(model) == bytes_of(whole)


@pytest.mark.parametrize("way", ["serial", "overlapped"])
def test_a_second_interrupt_breaks_off_and_the_engine_says_so(kills, tmp_path, way):
    trained, kills.times = engine(**WAYS[way]), 2
    ticks = trained.run(Feed(TICKS))
    next(ticks)
    assert kills.during(drained(ticks), 2)
    for refused in (lambda: trained.save(tmp_path), lambda: next(trained.run(Feed(TICKS)))):
        with pytest.raises(ValueError, match=r"engine: tick 1 was broken off by a second interrupt; .*last checkpoint"):
            refused()


@pytest.mark.parametrize("how", ["run", "step"])
def test_a_second_interrupt_breaks_off_and_the_pvm_says_so(kills, tmp_path, how):
    model, feed, kills.times = PVM(TINY), Scene(TICKS), 2
    walk(model, feed, 3)
    work = drained(model.run(feed)) if how == "run" else lambda: walk(model, feed)
    assert kills.during(work, 4)
    broken = r"pvm: tick \d was broken off by a second interrupt; .*last checkpoint"
    for refused in (lambda: model.save(tmp_path), lambda: walk(model, feed), lambda: next(model.run(feed))):
        with pytest.raises(ValueError, match=broken):
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
    assert_same_model(parameters(trained), parameters(whole))


def test_asking_is_interrupted_at_once_and_changes_nothing(kills):
    trained, whole = engine(), engine()
    list(whole.run(Feed(TICKS)))
    list(itertools.islice(trained.run(Feed(TICKS)), 3))
    for after in range(1, 8):
        assert kills.during(lambda: trained.evaluate(Feed(5)), after)
    assert kills.during(lambda: trained.best(Feed()[0].ids, 3), 2)
    assert kills.during(lambda: [trained.evaluate(Feed(5)) for _ in trained.run(Feed(TICKS))], 22)
    list(trained.run(Feed(TICKS)))
    assert_same_model(parameters(trained), parameters(whole))


class Failing:
    """A feed that fails once, in a way of its own."""

    def __init__(self, feed, failure, at=5):
        self._feed, self._failure, self._at = feed, failure, at

    def __getattr__(self, name):
        return getattr(self._feed, name)

    def __len__(self):
        return len(self._feed)

    def __getitem__(self, tick):
        if tick == self._at:
            raise self._failure
        return self._feed[tick]


FAILURES = [OSError("gone"), TypeError("no"), StopIteration(), KeyboardInterrupt(), SystemExit(3), GeneratorExit()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_a_feed_raises_leaves_the_model_between_two_ticks(tmp_path, failure):
    expected = RuntimeError if isinstance(failure, StopIteration) else type(failure)
    for options in WAYS.values():
        whole, trained = engine(**options), engine(**options)
        list(whole.run(Feed(TICKS)))
        with pytest.raises(expected):
            list(trained.run(Failing(Feed(TICKS), failure)))
        trained.save(tmp_path / "engine")
        list(trained.run(Feed(TICKS)))
        assert_same_model(parameters(trained), parameters(whole))
    whole, model = PVM(TINY), PVM(TINY)
    list(whole.run(Scene(TICKS)))
    with pytest.raises(expected) as found:
        list(model.run(Failing(Scene(TICKS), failure)))
    assert "at tick 5" in " ".join([str(found.value), *getattr(found.value, "__notes__", [])])
    model.save(tmp_path / "pvm")
    list(model.run(Scene(TICKS)))
    assert bytes_of(model) == bytes_of(whole)


@pytest.mark.parametrize("again", [5, 6, 7])
def test_a_feed_that_fails_before_batches_begun_come_again_loses_none_of_them(tmp_path, again):
    """With a delay of 2 batches 5 and 6 were begun on parameters that have moved since: they are not begun anew."""
    whole, trained = engine(delay=2), engine(delay=2)
    list(whole.run(Feed(TICKS)))
    list(itertools.islice(trained.run(Feed(TICKS)), 5))
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            list(trained.run(Failing(Feed(TICKS), OSError("gone"), again)))
    list(trained.run(Feed(3)))
    trained.save(tmp_path)
    for one in (trained, Engine.load(tmp_path, threads=2)[0]):
        list(one.run(Feed(TICKS)))
        assert_same_model(parameters(one), parameters(whole))


def test_a_run_whose_first_batch_cannot_be_asked_for_says_why():
    trained = engine(overlap=False)

    def broken(*arguments):
        raise MemoryError("no room")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.engine.schedule.Schedule._fill_next", broken)
        with pytest.raises(MemoryError, match="no room"):
            next(trained.run(Feed(TICKS)))
    list(trained.run(Feed(TICKS)))


def test_a_feed_whose_length_cannot_be_told_or_whose_batch_has_another_form_leaves_the_model_whole(tmp_path):
    class Endless(Feed):
        def __len__(self):
            raise TypeError("no length")

    class Torn(Feed):
        def __getitem__(self, tick):
            batch = super().__getitem__(tick)
            return batch._replace(ids=np.tile(batch.ids, 2)) if tick == 3 else batch

    trained = engine()
    with pytest.raises(TypeError, match="no length"):
        list(trained.run(Endless()))
    for overlap in (True, False):
        trained.overlap, trained.tick = overlap, 0
        with pytest.raises(ValueError):
            list(trained.run(Torn()))
        assert trained.tick == 3
        trained.save(tmp_path)


def test_what_the_callers_own_code_raises_leaves_the_model_whole(tmp_path):
    trained, model = engine(delay=1), PVM(TINY)
    for failure in (ValueError("no"), MemoryError(), KeyboardInterrupt()):
        for ticks in (trained.run(Feed(TICKS)), model.run(Scene(TICKS))):
            next(ticks)
            with pytest.raises(type(failure)):
                ticks.throw(failure)
    assert trained.tick == model.step_number == 3
    trained.save(tmp_path / "engine")
    model.save(tmp_path / "pvm")


def test_a_frame_that_cannot_be_filled_in_leaves_a_pvm_whole():
    whole, model, feed = PVM(TINY), PVM(TINY), Scene(4)
    walk(whole, feed)
    for tick in range(4):
        for frame in (np.zeros(TINY.frame, complex), np.zeros(3)):
            with pytest.raises((TypeError, ValueError)):
                model.step(frame)
        model.step(feed[tick].image[0], feed[tick].box[0])
    assert bytes_of(model) == bytes_of(whole)


def test_what_fails_in_a_step_marks_the_model(tmp_path):
    model = PVM(TINY)
    walk(model, Scene(3))
    model.readouts.step = lambda *arguments: (_ for _ in ()).throw(MemoryError())
    with pytest.raises(MemoryError):
        walk(model, Scene(4))
    with pytest.raises(ValueError, match="tick 3 failed half-way: MemoryError"):
        model.save(tmp_path)


def test_a_step_of_a_readout_alone_is_done_to_its_end():
    rng = np.random.default_rng(0)
    hidden, target = rng.normal(size=(8, 6)).astype(np.float32), rng.integers(0, CLASSES, 8).astype(np.int32)
    grad, expected = np.empty_like(hidden), np.empty_like(hidden)
    readout, whole = (FullReadout(Feed.counts, 6, batch=8) for _ in range(2))
    whole.step(expected, hidden, target)
    learn = readout.learn

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        learn(*arguments)

    readout.learn = interrupted
    with pytest.raises(KeyboardInterrupt):
        readout.step(grad, hidden, target)
    assert_same_model(readout.parameters(), whole.parameters())
    assert np.array_equal(grad, expected)


# What holds signals back


def handled(number, frame):
    received.append(number)


received: list[int] = []


@pytest.fixture
def own_handler():
    before = signal.signal(signal.SIGINT, handled)
    received.clear()
    yield
    signal.signal(signal.SIGINT, before)


def test_one_signal_waits_and_is_handled_once_at_the_end(own_handler):
    with Held():
        signal.raise_signal(signal.SIGINT)
        assert not received
    assert received == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is handled


def test_from_the_second_on_signals_are_handled_at_once(own_handler):
    with Held():
        for count in (0, 2, 3):
            signal.raise_signal(signal.SIGINT)
            assert len(received) == count
    assert len(received) == 3


def test_where_it_is_released_signals_are_the_callers(own_handler):
    with Held() as held:
        for count in (1, 3):
            signal.raise_signal(signal.SIGINT)
            with held.released():
                assert len(received) == count and signal.getsignal(signal.SIGINT) is handled
                signal.raise_signal(signal.SIGINT)
                assert len(received) == count + 1
    assert signal.getsignal(signal.SIGINT) is handled


def test_pythons_own_handler_raises_when_the_work_is_done():
    done = False
    with pytest.raises(KeyboardInterrupt), Held():
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_held_twice_waits_for_the_outer_end(own_handler):
    with Held():
        with Held():
            signal.raise_signal(signal.SIGINT)
        assert not received
    assert len(received) == 1


def test_while_a_stop_is_open_it_is_told_after_the_tick():
    with Stop() as stop:
        with Held():
            signal.raise_signal(signal.SIGINT)
            assert not stop.signal
        assert stop.signal == signal.SIGINT


def test_nothing_is_held_in_another_thread_nor_where_nobody_handles():
    found = []

    def elsewhere():
        with Held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Held():
            found.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [signal.default_int_handler, signal.SIG_IGN]


def test_a_signal_while_the_handler_is_put_back_waits_until_it_is(monkeypatch):
    put = signal.signal

    def late(number, handler):
        signal.raise_signal(signal.SIGINT)
        return put(number, handler)

    with pytest.raises(KeyboardInterrupt), Held():
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(signal, "signal", late)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
