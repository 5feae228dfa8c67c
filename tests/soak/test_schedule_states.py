"""Any order of ticks, stops, waits and failures of a schedule, on queues of any order, gives the serial numbers."""

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cpu.device import Device
from hybrid.schedule.schedule import Plan, Schedule, Stage
from hybrid.schedule.slot import Slot
from hybrid.schedule.trace import Trace
from tests.soak.queues import Order
from tests.support.small_engine import BATCH, Feed

PRIME = 1_000_003
QUEUES = ("feed", "copy in", "dense", "copy out", "sparse")


class Sum:
    """A model of two numbers, each moved by one queue; the order of all that moves or reads them can be told from it."""

    def __init__(self):
        self.dense = self.sparse = 1

    def forward(self, slot):
        slot.seen = (self.dense * 31 + int(slot.ids.sum())) % PRIME

    def readout(self, slot):
        slot.loss = float(self.sparse)
        self.sparse = (self.sparse * 37 + slot.seen) % PRIME
        slot.pulled = self.sparse

    def backward(self, slot):
        slot.back = (slot.pulled * 41 + self.dense) % PRIME

    def update(self, slot):
        self.dense = (self.dense * 43 + slot.back) % PRIME

    def plan(self):
        begin = [Stage("in", "copy in", lambda slot: None), Stage("forward", "dense", self.forward, ("in",))]
        finish = [
            Stage("readout", "sparse", self.readout, ("forward",)),
            Stage("backward", "dense", self.backward, ("readout",)),
            Stage("out", "copy out", lambda slot: None, ("backward",)),
        ]
        return Plan(begin, finish, [Stage("update", "dense", self.update, ("backward",))])


class Runs(RuleBasedStateMachine):
    """A schedule after another over one feed; what is begun and not finished goes from each to the next."""

    @initialize(delay=st.integers(0, 3), micro=st.integers(1, 3), seed=st.integers(0, 999), apart=st.booleans())
    def begin(self, delay, micro, seed, apart):
        self.delay, self.micro, self.apart = delay, micro, apart
        self.order = Order(random.Random(seed), seed % 10 / 10)
        self.feed, self.model, self.tick = Feed(10**6), Sum(), 0
        self.plain, self.plain_begun = Sum(), {}
        self.kept, self.losses = {}, []
        self.running = None

    @rule(ticks=st.integers(1, 6))
    def go_on(self, ticks):
        self.running = self.running or self._run()
        for _ in range(ticks):
            done = next(self.running)
            self.schedule.moving = False
            assert (done.number, done.loss) == (self.tick, self._serial_tick())
            assert len(self.schedule.begun) == self.delay
            self.tick += 1

    @rule()
    def wait(self):
        if self.running:
            self.schedule.wait()

    @rule()
    def leave(self):
        if not self.running:
            return
        self.schedule.wait()
        self.running.close()
        self.kept = {slot.tick: [each.seen for each in slots] for slots in self.schedule.begun for slot in slots}
        assert self.schedule.moving is False and sorted(self.kept) == list(range(self.tick, self.tick + self.delay))
        assert (self.model.dense, self.model.sparse) == (self.plain.dense, self.plain.sparse)
        self.running = None

    @rule(far=st.integers(0, 3))
    def the_feed_fails(self, far):
        """What is raised comes after the ticks before it, and then nothing moves."""
        self.leave()
        at, self.running = self.tick + self.delay + far, None
        running = self._run(at)
        with pytest.raises(OSError, match="the feed"):
            for done in running:
                self.schedule.moving = False
                assert done.loss == self._serial_tick()
                self.tick += 1
        assert not self.schedule.moving and len(self.schedule.begun) == self.delay
        self.running = running
        self.leave()

    def _run(self, fails=-1):
        names = QUEUES if self.apart else QUEUES[1:]
        queues = {name: self.order.queue(name, 1) for name in names}
        queues.setdefault("feed", Device().inline("feed", 1))
        slots = [[Slot(BATCH, Feed.most_ids, {}, Device()) for _ in range(self.micro)] for _ in range(self.delay + 2)]
        self.schedule = Schedule(self.model.plan(), slots, queues, self.delay, Trace())
        return self.schedule.run(self._batches(fails), self._restore)

    def _batches(self, fails):
        tick = self.tick
        while True:
            if tick == fails:
                raise OSError("the feed")
            yield tick, self.feed[tick]
            tick += 1

    def _restore(self, slots):
        seen = self.kept.get(slots[0].tick)
        for slot, one in zip(slots, seen or (), strict=False):
            slot.seen = one
        return seen is not None

    def _serial_tick(self):
        """The loss of this tick, with nothing but slots of one batch."""
        for tick in range(self.tick, self.tick + self.delay + 1):
            if tick not in self.plain_begun:
                self.plain_begun[tick] = self._filled(tick)
                for slot in self.plain_begun[tick]:
                    self.plain.forward(slot)
        slots = self.plain_begun.pop(self.tick)
        for slot in slots:
            self.plain.readout(slot)
        for slot in slots:
            self.plain.backward(slot)
        self.plain.update(slots[-1])
        return sum(slot.loss * slot.count for slot in slots) / BATCH

    def _filled(self, tick):
        each = -(-BATCH // self.micro)
        slots = [Slot(BATCH, Feed.most_ids, {}, Device()) for _ in range(self.micro)]
        for micro, slot in enumerate(slots):
            slot.fill(tick, micro, self.feed[tick], min(micro * each, BATCH), min((micro + 1) * each, BATCH))
        return slots


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=max(1, settings.default.max_examples // 5), stateful_step_count=15)


def test_a_plan_with_a_wait_less_does_not_pass(monkeypatch):
    plan = Sum.plan

    def hasty(self):
        made = plan(self)
        return made._replace(finish=[stage._replace(after=()) for stage in made.finish])

    monkeypatch.setattr(Sum, "plan", hasty)
    with pytest.raises((AssertionError, AttributeError)):
        for seed in range(20):
            runs = Runs()
            runs.begin(0, 2, seed, True)
            runs.go_on(6)
