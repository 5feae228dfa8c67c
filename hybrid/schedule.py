"""When the stages of a batch run: queues, events, micro-batches and the delay. No arithmetic, and no `if gpu`.

A tick is one batch, cut into micro-batches, one slot each. `begin` puts its first stages on the queues, `finish` the rest;
stage by stage, all micro-batches of a stage one after another, so that while the readout works on one micro-batch the
trunk works on the next. Parameters move only in `finish`, in the order of ticks and micro-batches, on one queue for each
set of parameters; hence the numbers do not depend on how the queues overlap.

delay = batches begun and not finished when a batch is finished. 0 is exact; 1 begins batch t + 1 before batch t is
finished, on parameters that do not know t yet: it changes the numbers.
"""

import functools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .slot import Slot
from .trace import Trace


class Stage(NamedTuple):
    """One step of a micro-batch's way.

    name   also names its event in slot.events
    queue  the name of the queue it runs on
    work   called with the slot
    after  stages of the same slot that must be past; stages of the same queue keep their order anyway
    """

    name: str
    queue: str
    work: Callable[[Slot], Any]
    after: tuple[str, ...] = ()


class Tick(NamedTuple):
    """What a finished batch was: its number, how many examples it had, their mean loss in nats (nan for none)."""

    number: int
    examples: int
    loss: float


class Plan(NamedTuple):
    """The stages of a batch: `begin` and `finish` once a micro-batch, `update` once a tick, after all of `finish`."""

    begin: list[Stage]
    finish: list[Stage]
    update: list[Stage]


class Schedule:
    """Runs a plan over a feed.

    slots   (delay + 2) sets of slots, one slot a micro-batch: `delay` begun, one being finished, one being filled
    queues  by name; several names may share one queue, which then does everything in order
    """

    def __init__(self, plan: Plan, slots: list[list[Slot]], queues: dict[str, Any], delay: int, trace: Trace):
        if len(slots) != delay + 2:
            raise ValueError(f"slots: found {len(slots)} sets, expected {delay + 2} for delay {delay}")
        self.plan, self.slots, self.queues, self.delay, self.trace = plan, slots, queues, delay, trace
        self.begun: deque[list[Slot]] = deque()
        self.seconds = 0.0  # of the last tick

    def run(self, batches: Iterator[tuple[int, Any]], restore: Callable[[list[Slot]], bool]) -> Iterator[Tick]:
        """Run (tick, batch) pairs; yields each tick when it is finished.

        While the caller has the tick, nothing is in flight but the `delay` batches begun. The next batch is taken from the
        feed while this one is under way. restore(slots): true when it has filled in what the begin stages would write, as
        for batches that were begun before a checkpoint.
        """
        sets = iter(_cycle(self.slots))
        upcoming = _fill(sets, batches)
        while upcoming or self.begun:
            start = time.perf_counter()
            if upcoming:
                if not restore(upcoming):
                    self._put(self.plan.begin, upcoming)
                self.begun.append(upcoming)
            finishing = None
            if len(self.begun) > self.delay or not upcoming:
                finishing = self.begun.popleft()
                self._put(self.plan.finish, finishing)
                self._put_update(finishing)
            upcoming = _fill(sets, batches)
            if finishing:
                self.wait([finishing])
                self.seconds = time.perf_counter() - start
                self.trace.ticks += 1
                self.trace.wall += self.seconds
                yield _tick(finishing)

    def wait(self, sets=None) -> None:
        """Wait for what has been put on the queues for these sets of slots (None: the batches begun)."""
        for slots in self.begun if sets is None else sets:
            for slot in slots:
                for event in slot.events.values():
                    event.wait()

    def _put(self, stages: list[Stage], slots: list[Slot]) -> None:
        for stage in stages:
            for slot in slots:
                if slot.count:
                    # Stages of a batch restored from a checkpoint have no event: they are past.
                    self._run(stage, slot, [slot.events[name] for name in stage.after if name in slot.events])

    def _put_update(self, slots: list[Slot]) -> None:
        last = slots[-1]
        for stage in self.plan.update if last.count else ():
            self._run(stage, last, [slot.events[name] for slot in slots for name in stage.after])

    def _run(self, stage: Stage, slot: Slot, after: list) -> None:
        queue = self.queues[stage.queue]
        note = functools.partial(self.trace.note, queue.name, stage.name, slot.tick, slot.micro)
        slot.events[stage.name] = queue.run(stage.work, slot, after=after, note=note)


def _cycle(sets):
    while True:
        yield from sets


def _fill(sets, batches) -> list[Slot] | None:
    """Copy the next batch into the next set of slots; None at the end of the feed. Slots left empty are left out."""
    pair = next(batches, None)
    if pair is None:
        return None
    tick, batch = pair
    slots = next(sets)
    examples = len(batch.target)
    size = -(-examples // len(slots))
    for micro, slot in enumerate(slots):
        slot.events.clear()
        slot.fill(tick, micro, batch, min(micro * size, examples), min((micro + 1) * size, examples))
    return [slot for slot in slots if slot.count] or slots[:1]


def _tick(slots: list[Slot]) -> Tick:
    examples = sum(slot.count for slot in slots)
    loss = sum(slot.loss * slot.count for slot in slots) / examples if examples else math.nan
    return Tick(slots[0].tick, examples, loss)
