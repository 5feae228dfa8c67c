"""The schedule on queues that only write down what they are asked to do, and on real ones under hostile timing."""

import threading
import time

import numpy as np
import pytest

from cpu.device import Device
from hybrid.feeds import Batch
from hybrid.schedule.schedule import Plan, Schedule, Stage
from hybrid.schedule.slot import Slot
from hybrid.schedule.trace import Trace

QUEUES = ("feed", "dense", "sparse")


@pytest.fixture
def threads():
    """Queues with threads of their own, closed afterwards."""
    made = {name: Device().queue(name, 1) for name in QUEUES}
    yield made
    for queue in made.values():
        queue.close()


class Past:
    def wait(self):
        return None


class Recorder:
    """A queue that writes down its work and does nothing."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def run(self, *work, after=(), note=None):
        _, stage, tick, micro = note.args
        self.log.append(f"{stage} {tick}.{micro}")
        return Past()


def batches(count, examples=4):
    for tick in range(count):
        yield tick, Batch(np.full(examples, tick, np.int32), None, np.arange(examples, dtype=np.int32))


def slots(ahead, micro_batches, rows=4):
    return [[Slot(rows, rows, {"x": 1}, Device()) for _ in range(micro_batches)] for _ in range(ahead + 2)]


def plan(work=lambda slot: None):
    return Plan(
        [Stage("forward", "dense", work)],
        [Stage("readout", "sparse", work, ("forward",)), Stage("backward", "dense", work, ("readout",))],
        [Stage("update", "dense", work, ("backward",))],
    )


def recorders(log):
    return {name: Recorder(name, log) for name in ("dense", "sparse")} | {"feed": Device().inline("feed", 1)}


def recorded(ahead, micro_batches, count):
    log = []
    schedule = Schedule(plan(), slots(ahead, micro_batches), recorders(log), Trace())
    ticks = [tick.number for tick in schedule.run(batches(count))]
    assert ticks == list(range(count))
    return log


def test_with_none_ahead_a_batch_is_finished_before_the_next_begins():
    log = recorded(ahead=0, micro_batches=1, count=3)
    assert log == [f"{stage} {tick}.0" for tick in range(3) for stage in ("forward", "readout", "backward", "update")]


@pytest.mark.parametrize("ahead", [0, 2])
def test_finished_ticks_are_counted_and_timed_but_the_first_which_may_compile(ahead):
    trace, took = Trace(), []
    schedule = Schedule(plan(), slots(ahead, 1), recorders([]), trace)
    for tick in schedule.run(batches(4)):
        took.append(schedule.seconds)
        counted = took[min(tick.number, 1) :]
        assert (trace.ticks, trace.wall) == (len(counted), pytest.approx(sum(counted)))


def test_micro_batches_go_stage_by_stage_and_the_update_comes_once_after_all():
    log = recorded(ahead=0, micro_batches=2, count=1)
    stages = ["forward", "forward", "readout", "readout", "backward", "backward", "update"]
    assert [entry.split()[0] for entry in log] == stages
    assert [entry[-1] for entry in log[:6]] == ["0", "1"] * 3


def test_with_one_ahead_one_batch_is_begun_early_and_never_two():
    log = recorded(ahead=1, micro_batches=1, count=4)
    for tick in range(3):
        assert log.index(f"forward {tick + 1}.0") < log.index(f"readout {tick}.0")
    for tick in range(2):
        assert log.index(f"update {tick}.0") < log.index(f"forward {tick + 2}.0")


def test_a_batch_too_many_is_never_begun():
    schedule = Schedule(plan(), slots(1, 1), recorders([]), Trace())
    schedule.begun.extend(schedule.slots[:2])  # as if one had been left unfinished
    with pytest.raises(RuntimeError, match="3 batches in flight, expected at most 2"):
        next(schedule.run(batches(3)))


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_after_a_batch_that_holds_none_is_begun_until_the_caller_has_had_it(ahead):
    log = []
    schedule = Schedule(plan(), slots(ahead, 1), recorders(log), Trace())
    for tick in schedule.run(batches(9), lambda slots: slots[0].tick % 4 == 2):
        if tick.number % 4 == 2:
            assert not schedule.begun and log[-1] == f"update {tick.number}.0"
        elif ahead:
            assert len(schedule.begun) <= ahead
    assert [entry for entry in log if entry.startswith("update")] == [f"update {tick}.0" for tick in range(9)]
    if ahead:
        assert log.index("forward 1.0") < log.index("update 0.0")


class Asked(Recorder):
    """A queue that writes down how many events each work comes after, too."""

    def run(self, work, *arguments, after=(), note=None):
        done = super().run(work, *arguments, after=after, note=note)
        self.log[-1] += f" after {len(after)}"
        return done


def test_a_stage_may_be_of_some_micro_batches_or_of_a_batch_once():
    """Whoever comes after it waits for those that there are; of a short batch the last slot is not used."""
    log = []
    odd = Stage("odd", "dense", lambda slot: None, ("forward",), of=lambda slot: slot.micro % 2 == 1)
    once = Stage("once", "sparse", lambda slot: None, ("forward", "odd"), once=True)
    last = Stage("last", "dense", lambda slot: None, ("odd",))
    queues = {name: Asked(name, log) for name in ("dense", "sparse")} | {"feed": Device().inline("feed", 1)}
    way = Plan([Stage("forward", "dense", lambda slot: None)], [odd, once, last], [])
    list(Schedule(way, slots(0, 4), queues, Trace()).run(batches(1, examples=3)))
    assert log[3:5] == ["odd 0.1 after 1", "once 0.2 after 4"]
    assert log[5:] == [f"last 0.{micro} after {micro % 2}" for micro in range(3)]


def test_dense_and_sparse_stages_of_different_micro_batches_run_at_the_same_time(threads):
    def work(slot):
        time.sleep(0.02)

    trace = Trace()
    schedule = Schedule(plan(work), slots(0, 4), threads, trace)
    list(schedule.run(batches(2)))
    dense = [i for i in trace.recent if i.queue == "dense"]
    sparse = [i for i in trace.recent if i.queue == "sparse"]
    assert any(a.start < b.end and b.start < a.end and a.micro != b.micro for a in dense for b in sparse)
    assert trace.summary()["overlap"] > 0.3


@pytest.mark.parametrize(("ahead", "slow"), [(0, "feed"), (1, "caller"), (3, "feed")])
def test_whoever_is_slow_holds_the_others_up_and_nothing_grows(ahead, slow, threads):
    """The feed is never more than the slots ahead: the batches begun, the one being finished, the one being filled."""
    taken, finished = [], []

    def feed():
        for tick, batch in batches(12):
            taken.append(tick)
            assert tick <= len(finished) + ahead + 1
            time.sleep(0.002 * (slow == "feed"))
            yield tick, batch

    schedule = Schedule(plan(), slots(ahead, 2), threads, Trace())
    for tick in schedule.run(feed()):
        finished.append(tick.number)
        assert len(schedule.begun) <= ahead
        time.sleep(0.002 * (slow == "caller"))
    assert finished == list(range(12)) == taken


def test_a_tick_is_not_held_up_by_the_batch_that_is_being_filled(threads):
    given, seen = threading.Event(), []

    def feed():
        for tick, batch in batches(3):
            if tick == 2:
                seen.append(given.wait(10))
            yield tick, batch

    schedule = Schedule(plan(), slots(1, 1), threads, Trace())
    next(schedule.run(feed()))
    given.set()
    schedule.wait()
    assert seen == [True]


@pytest.mark.parametrize("slow", ["feed", "forward"])
def test_who_waits_for_all_waits_for_the_batch_that_is_being_filled_and_for_those_begun(slow, threads):
    """So that the engine may be saved, or closed, with nothing under way."""
    done = []

    def feed():
        for tick, batch in batches(3):
            time.sleep(0.1 * tick * (slow == "feed"))
            done.append(f"filled {tick}")
            yield tick, batch

    def forward(slot):
        time.sleep(0.1 * slot.tick * (slow == "forward"))
        done.append(f"forward {slot.tick}")

    way = Plan([Stage("forward", "dense", forward)], [], [])
    schedule = Schedule(way, slots(1, 1), threads, Trace())
    next(schedule.run(feed()))  # of 0, while 1 is begun and 2 is being filled
    schedule.wait()
    assert {"forward 1", "filled 2"} <= set(done)
