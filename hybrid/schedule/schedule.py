"""When the stages of a batch run: queues, events, micro-batches and the delay. No arithmetic, and no `if gpu`.

A tick is one batch. It is cut into micro-batches, each in a slot of its own. A plan has stages to `begin` a batch with and
stages to `finish` it. They are put on the queues stage by stage: first one stage of all micro-batches, then the next stage of
all, so that the trunk works on one micro-batch while the readout works on the one before. Parameters move only in `finish`, in
the order of ticks and micro-batches, and each set of parameters on one queue. So the numbers do not depend on how the queues
overlap.

delay is the number of batches that are begun and not finished when a batch is finished. 0 is exact. With k, batch t + k is
begun before batch t is finished, on parameters that have not learned from batches t to t + k - 1 yet: this changes the
numbers.
"""

import functools
import itertools
import math
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .slot import SlotState
from .trace import Trace

FORKED = (
    "run: found a process that was forked within the run, expected the process that began it; begin another run here, or "
    "fork before the first tick"
)


class Stage(NamedTuple):
    """One step of a micro-batch's way.

    name   of the stage, and of its event in slot.events
    queue  the name of the queue on which it runs
    work   is called with the slot
    after  names of stages of the same slot that must be done before; stages on one queue keep their order in any case
    of     for which of the slots that have examples it is (None: for all); others do not have its event
    once   True: it runs once a batch, with the last slot that has examples, after those stages of all of them
    """

    name: str
    queue: str
    work: Callable[[Any], Any]
    after: tuple[str, ...] = ()
    of: Callable[[Any], bool] | None = None
    once: bool = False


class Tick(NamedTuple):
    """A finished batch: its number, how many examples it had, and their mean loss in nats, which is weighted where they have
    weights (nan where there were none).
    """

    number: int
    examples: int
    loss: float


class Plan(NamedTuple):
    """The stages of a batch: `begin` and `finish` run once a micro-batch, `update` once a batch, after all of `finish`."""

    begin: list[Stage]
    finish: list[Stage]
    update: list[Stage]


class Schedule:
    """Runs a plan over a feed.

    slots   (delay + 2) sets of slots; in each one `SlotState` a micro-batch. `delay` sets are begun, one is being finished
            and one is being filled, so the feed waits for a slow stage or a slow caller, and memory does not grow
    queues  by name, "feed" among them; several names may share one queue, which then does everything in order
    whole   a batch is cut at multiples of so many examples

    begun    the sets of slots that are begun and not finished
    seconds  of the last tick
    moving   True from the first stage of a tick on, until whoever runs this has counted the tick and sets it to False.
             Where a tick breaks off in between, parameters have moved in part.
    """

    def __init__(
        self, plan: Plan, slots: list[list[Any]], queues: dict[str, Any], delay: int, trace: Trace, *, whole: int = 1
    ):
        if len(slots) != delay + 2:
            raise ValueError(f"slots: found {len(slots)} sets, expected {delay + 2} for delay {delay}")
        self.plan = plan._replace(update=[stage._replace(once=True) for stage in plan.update])
        self.slots, self.queues, self.delay, self.trace = slots, queues, delay, trace
        self._whole = whole
        self.begun: deque[list[Any]] = deque()
        self.seconds = 0.0  # of the last tick
        self.moving = False
        self._filling: Any = None
        self._process = os.getpid()

    def run(
        self,
        batches: Iterator[tuple[int, Any]],
        restore: Callable[[list[Any]], bool],
        hold: Callable[[list[Any]], bool] = lambda slots: False,
    ) -> Iterator[Tick]:
        """Run (tick, batch) pairs; yields each tick when it is finished.

        restore(slots)  True when it has filled in what the begin stages would write, as for batches that were begun before a
                        checkpoint was written
        hold(slots)     True for a batch after which no other is begun until the caller has had its tick

        While the caller has a tick, only the `delay` batches begun are in flight, and the next batch is being filled in.

        Raises what a stage raised, with a note of the stage, the tick and the micro-batch. What `batches` raised, and a slot
        that a batch does not fit, is raised after the ticks before it; then nothing is moving. So is the RuntimeError of a
        process that was forked within the run: the threads of the queues stayed with its parent.
        """
        sets = itertools.cycle(self.slots)
        self._fill(sets, batches)
        held = False
        while True:
            start = time.perf_counter()
            self.trace.next_tick()
            upcoming = None if held else self._filling.wait()
            if isinstance(upcoming, BaseException):
                raise upcoming
            self.moving = bool(upcoming or self.begun)
            if upcoming:
                self._begin(upcoming, restore)
                if self._feeds_apart:
                    self._fill(sets, batches)
                held = hold(upcoming)
            elif not self.begun:
                return
            finishing = None
            if len(self.begun) > self.delay or not upcoming or held:
                finishing = self.begun.popleft()
                self._put(self.plan.finish, finishing)
                self._put(self.plan.update, finishing)
            held = held and bool(self.begun)
            if upcoming and not self._feeds_apart:  # in this thread: after all that other queues can do meanwhile
                self._fill(sets, batches)
            if not finishing:
                self.moving = False
                continue
            self.wait([finishing])
            for slot in finishing:
                slot.release()
            self.seconds = time.perf_counter() - start
            self.trace.ticks += 1
            self.trace.wall += self.seconds
            yield _tick(finishing)
            if os.getpid() != self._process:
                raise RuntimeError(FORKED)

    @property
    def _feeds_apart(self) -> bool:
        """Whether batches are made while this thread goes on."""
        return bool(self.queues["feed"].apart)

    def wait(self, sets: Iterable[list[Any]] | None = None) -> None:
        """Wait for what has been put on the queues for these sets of slots (None: all that is in flight).

        In a process that was forked within the run the queues' threads are missing: RuntimeError where batches are begun.
        """
        if os.getpid() != self._process and any(queue.apart for queue in self.queues.values()):
            if self.begun:
                raise RuntimeError(FORKED)
            return
        if sets is None and self._filling:  # otherwise the first batch could not be asked for
            self._filling.wait()
        for slots in self.begun if sets is None else sets:
            for slot in slots:
                for name, event in slot.events.items():
                    _named(name, slot, event.wait)

    def _begin(self, slots: list[Any], restore: Callable[[list[Any]], bool]) -> None:
        for slot in slots:
            slot.take()
        if not restore(slots):
            self._put(self.plan.begin, slots)
        self.begun.append(slots)
        if len(self.begun) > self.delay + 1:
            raise RuntimeError(f"schedule: {len(self.begun)} batches begun and not finished, delay allows {self.delay}")

    def _fill(self, sets: Iterator[list[Any]], batches: Iterator[tuple[int, Any]]) -> None:
        queue = self.queues["feed"]
        self._filling = queue.run(self._fill_next, sets, batches, queue.name)

    def _fill_next(
        self, sets: Iterator[list[Any]], batches: Iterator[tuple[int, Any]], queue: str
    ) -> list[Any] | BaseException | None:
        """Copy the next batch into the next set of slots; None at the end of the feed.

        What the feed raises, and an interrupt of the feed's code, is returned: it belongs to the next tick, and this tick is to
        be finished first.
        """
        start = time.perf_counter()
        try:
            pair = next(batches, None)
            if pair is None:
                return None
            tick, batch = pair
            slots: list[Any] = next(sets)
            examples = batch.examples
            size = part(examples, len(slots), self._whole)
            for micro, slot in enumerate(slots):
                slot.fill(tick, micro, batch, min(micro * size, examples), min((micro + 1) * size, examples))
            self.trace.note(queue, "feed", tick, 0, start, time.perf_counter())
        except BaseException as failure:
            return failure
        return slots

    def _put(self, stages: list[Stage], slots: list[Any]) -> None:
        full = [slot for slot in slots if slot.count]
        for stage in stages if full else ():
            if stage.once:
                self._run(stage, full[-1], full)
                continue
            for slot in full:
                if stage.of is None or stage.of(slot):
                    self._run(stage, slot, [slot])

    def _run(self, stage: Stage, slot: SlotState, behind: list[Any]) -> None:
        # Stages of a batch restored from a checkpoint have no event: they are done.
        after = [one.events[name] for one in behind for name in stage.after if name in one.events]
        queue = self.queues[stage.queue]
        note = functools.partial(self.trace.note, queue.name, stage.name, slot.tick, slot.micro)
        slot.events[stage.name] = queue.run(_named, stage.name, slot, stage.work, slot, after=after, note=note)


def part(examples: int, parts: int, whole: int = 1) -> int:
    """Most examples of a micro-batch, where a batch is cut into so many at multiples of `whole`."""
    return -(-examples // (parts * whole)) * whole


def _named(stage: str, slot: SlotState, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do the work; what it raises carries the stage's name and the slot's tick."""
    try:
        return work(*arguments)
    except Exception as failure:
        if not hasattr(failure, "__notes__"):
            failure.add_note(f"in stage {stage} of tick {slot.tick}, micro-batch {slot.micro}")
        raise


def broken_off(tick: int, failure: BaseException) -> str:
    """What to say of a model in which a tick failed half-way."""
    if isinstance(failure, KeyboardInterrupt):
        return f"tick {tick} was broken off by a second interrupt"
    return f"tick {tick} failed half-way: {str(failure) or type(failure).__name__}"


def _tick(slots: list[Any]) -> Tick:
    examples = sum(slot.count for slot in slots)
    loss = sum(slot.loss * slot.count for slot in slots) / slots[0].examples if examples else math.nan
    return Tick(slots[0].tick, examples, loss)


# What a part of a model (input rows, trunk, readout) tells the route: the arrays and the stages that it needs.
#
# A part has up to three lists of stages. Each is a method with an argument `copy`, a `Copies`:
#
#     begin   up to the hidden vectors; nothing learns in them
#     finish  from the hidden vectors back to the gradient of what the part reads
#     last    what no other part waits for


class Buffers(NamedTuple):
    """The arrays of a slot that a part reads and writes.

    widths    numbers a row of its float32 arrays, by name; the dense stages find them on their device as NAME_dev
    crossing  names of the arrays that are needed on the host as well: some of these, or of ids, bag_at, values, target, weight
              and losses
    begun     names of those that `begin` writes: a checkpoint keeps them for batches begun and not finished
    """

    widths: dict[str, int]
    crossing: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()


BESIDE = {"ids": "values", "target": "weight"}  # arrays that not every batch has, copied in one stage with another one


class Copies:
    """Makes the stages that copy an array of a slot to the device or home from it.

    device    of the dense stages
    crossing  names of the arrays that are needed on both sides
    """

    def __init__(self, device: Any, crossing: Collection[str]):
        self._device, self._crossing = device, crossing

    def __call__(self, name: str, *after: str) -> list[Stage]:
        """The stage "ARRAY in" or "ARRAY out", after the stages named; an empty list where nothing has to be copied."""
        array, way = name.split()
        if self._device.host_memory or array not in self._crossing:
            return []
        copied = [array, BESIDE[array]] if BESIDE.get(array) in self._crossing else [array]
        pairs = [(f"{name}_dev", name) if way == "in" else (name, f"{name}_dev") for name in copied]
        return [Stage(name, f"copy {way}", functools.partial(self._copy, pairs), after)]

    def _copy(self, pairs: list[tuple[str, str]], slot: Any) -> None:
        for target, source in pairs:
            if getattr(slot, source) is not None:
                self._device.copy(getattr(slot, target), getattr(slot, source))


SINGLE = "Numba's layer workqueue, which ends a process in which two threads enter kernels, expected tbb or omp"
SKIPPED = 2  # ticks after a change that are not measured: kernels load, threads start
DENSE = ("dense", "copy in", "copy out")  # the queues of the device where dense stages run
MEASURED = 4  # ticks a way of spending the cores is measured for at a time
TURNS = (False, True, False, True)  # the ways take turns: what else the machine does meets both


class Cores:
    """How a run spends its cores: stages in turn on all, or dense and sparse stages at the same time on a share each.

    Where the user leaves the choice open, both ways are measured in the first ticks. Here are the queues of each.

    dense, sparse  devices of the two kinds of stages
    threads        CPU threads in total, which queues that work at the same time share
    overlap        True, False, or None: measure. The choice changes no number, since results depend neither on the number
                   of threads nor on how queues overlap.
    spare          True: stages in turn take one thread, and the feed has another one, if there are two
    others         queues of the host that wait more than they work, by name: where stages overlap, each is a thread more
    """

    def __init__(
        self,
        dense: Any,
        sparse: Any,
        threads: int,
        overlap: bool | None,
        spare: bool = False,
        others: Sequence[str] = (),
    ):
        self._sparse = sparse
        apart = not dense.threads
        self._in_turn = "stages in turn on all threads"
        if overlap is not False and not sparse.enters_together():
            if overlap:
                raise ValueError(f"overlap: found {SINGLE}; unset NUMBA_THREADING_LAYER, or leave overlap out")
            overlap, self._in_turn = False, f"{self._in_turn}: found {SINGLE}"
        if overlap and threads < 2 and not apart:
            raise ValueError(f"overlap: needs at least 2 threads, found {threads}; raise threads or leave overlap out")
        inline = sparse.inline("all", threads)
        here = dense.inline("dense", threads) if apart else inline
        if spare:
            self._in_turn = "one thread learns" + (", one makes the next batch" if threads > 1 else "")
        feed = sparse.queue("feed", 1) if spare and threads > 1 else inline
        in_turn = dict.fromkeys(DENSE, here) | {"sparse": inline, "feed": feed} | dict.fromkeys(others, inline)
        self.ways: dict[bool, dict[str, Any]] = {False: in_turn}
        if apart and overlap is not False:  # a GPU takes no cores but that of the thread which feeds it
            queues = {name: dense.queue(name, 0) for name in DENSE}
            self.ways = {True: queues | self._host_queues(threads - 1)}
        elif overlap is not False and threads > 1:
            share = (threads - (threads > 2)) // 2
            queues = dict.fromkeys(DENSE, dense.queue("dense", share))
            self.ways[True] = queues | self._host_queues(threads - share)
        if True in self.ways:
            self.ways[True] |= {name: sparse.queue(name, 1) for name in others}
        self.measuring = overlap is None and len(self.ways) == 2
        self.overlapped = bool(overlap) or False not in self.ways
        self._turns, self._ticks = list(TURNS), 0
        self.seconds: dict[bool, list[float]] = {False: [], True: []}

    def _host_queues(self, threads: int) -> dict[str, Any]:
        """The queue of the sparse stages, and that of the feed: a thread of its own if one can be spared, else the caller's."""
        spare = threads > 1
        share = max(threads - spare, 1)
        feed = self._sparse.queue("feed", 1) if spare else self._sparse.inline("feed", 1)
        return {"sparse": self._sparse.queue("sparse", share), "feed": feed}

    @property
    def queues(self) -> dict[str, Any]:
        """The queues in use, by name."""
        return self.ways[self.overlapped]

    def note(self, schedule: Schedule) -> None:
        """Count a finished tick. While measuring, change to the other way in time, and at the end to the faster one."""
        if not self.measuring:
            return
        self._ticks += 1
        if self._ticks > SKIPPED:
            self.seconds[self.overlapped].append(schedule.seconds)
        if self._ticks < SKIPPED + MEASURED:
            return
        schedule.wait()
        self._ticks = 0
        self._turns.pop(0)
        self.measuring = bool(self._turns)
        self.overlapped = self._turns[0] if self._turns else self.median(True) < self.median(False)
        schedule.queues = self.queues
        schedule.trace.clear()

    def median(self, overlapped: bool) -> float:
        """Median seconds of a tick, as measured for one way of spending the cores."""
        return statistics.median(self.seconds[overlapped])

    def line(self) -> str:
        """The choice and its reason, in one printed line."""
        way = "dense and sparse stages overlapped" if self.overlapped else self._in_turn
        if self.measuring or not self.seconds[True]:
            return way
        turn, overlapped = (1e3 * self.median(way) for way in (False, True))
        return f"{way} (measured: {turn:.2f} ms a tick in turn, {overlapped:.2f} ms overlapped)"

    def close(self) -> None:
        """End the threads of all queues."""
        for queues in self.ways.values():
            for queue in queues.values():
                queue.close()
