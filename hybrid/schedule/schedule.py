"""The schedule of a batch's stages: queues, events, micro-batches and batches in flight. No arithmetic, and no `if gpu`.

A step, `tick` in code, processes one batch. The batch is split into micro-batches, each in its own slot. A plan has stages to
`begin` and stages to `finish` a batch. Each stage is submitted for all micro-batches before the next stage. So the trunk
works on one micro-batch while the readout works on the previous one. Parameters are updated only in `finish`, in the order of
steps and micro-batches, and each set of parameters on one queue. So results do not depend on the overlap of queues.

With `ahead` = k, k batches are in flight when a batch is finished: batch t + k begins before batch t is finished. So its stages
to `begin` must read no parameters, or there are none to `finish`. An engine has k = 0.
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
    "run: found a process that was forked within the run, expected the process that started it; start another run here, "
    "or fork before the first tick"
)


class Stage(NamedTuple):
    """One step in the processing of a micro-batch.

    name   of the stage, and of its event in slot.events
    queue  name of the queue on which it runs
    work   called with the slot
    after  names of stages of the same slot to wait for; stages on one queue are ordered anyway
    of     selects non-empty slots (None: all); others do not get its event
    once   True: runs once per batch, with the last non-empty slot, after those stages of all of them
    """

    name: str
    queue: str
    work: Callable[[Any], Any]
    after: tuple[str, ...] = ()
    of: Callable[[Any], bool] | None = None
    once: bool = False


class Tick(NamedTuple):
    """A finished batch: its number, its number of examples, and their mean loss in nats.
    The mean is weighted if they have weights; nan without examples."""

    number: int
    examples: int
    loss: float


class Plan(NamedTuple):
    """The stages of a batch: `begin` and `finish` run per micro-batch, `update` once per batch, after all of `finish`."""

    begin: list[Stage]
    finish: list[Stage]
    update: list[Stage]


def never_held(slots: list[Any]) -> bool:
    """Returns False: the next batch may begin at any time."""
    return False


class Schedule:
    """Execution of a plan over a feed.

    slots   (ahead + 2) sets of slots, one `SlotState` per micro-batch: `ahead` sets are in flight, one is being finished and
            one being filled. So the feed waits for a slow stage or caller, and memory is bounded
    queues  by name, including "feed"; several names may share one queue, which then runs them in order
    whole   batches are split at multiples of this number of examples

    begun    the sets of slots in flight
    seconds  of the last step
    moving   True from the first stage of a step until the caller has counted the step and sets it to False. If a step is
             aborted in between, parameters are partly updated.
    """

    def __init__(
        self,
        plan: Plan,
        slots: list[list[Any]],
        queues: dict[str, Any],
        trace: Trace,
        *,
        whole: int = 1,
    ):
        self.plan = plan._replace(update=[stage._replace(once=True) for stage in plan.update])
        self.slots, self.queues, self.ahead, self.trace = slots, queues, len(slots) - 2, trace
        self._whole = whole
        self.begun: deque[list[Any]] = deque()
        self.seconds = 0.0  # wall time of the last step
        self.moving = False
        self._filling: Any = None
        self._process = os.getpid()

    def run(
        self,
        batches: Iterator[tuple[int, Any]],
        hold: Callable[[list[Any]], bool] = never_held,
    ) -> Iterator[Tick]:
        """Runs (tick, batch) pairs; yields each step when it is finished.

        hold(slots)  returns True if no further batch may begin until the caller has received this one's step

        While the caller handles a step, only `ahead` batches are in flight, and the next batch is being filled.

        Raises a stage's error, with a note of the stage, the step and the micro-batch. An error of `batches`, of a slot that a
        batch does not fit, or of a process forked within the run, is raised after the steps before it; then `moving` is False.
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
                self._begin(upcoming)
                if self._feeds_apart:
                    self._fill(sets, batches)
                held = hold(upcoming)
            elif not self.begun:
                return
            finishing = None
            if len(self.begun) > self.ahead or not upcoming or held:
                finishing = self.begun.popleft()
                self._put(self.plan.finish, finishing)
                self._put(self.plan.update, finishing)
            held = held and bool(self.begun)
            if upcoming and not self._feeds_apart:  # in this thread, after all work that can overlap
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
        """True if batches are prepared in another thread."""
        return bool(self.queues["feed"].apart)

    def wait(self, sets: Iterable[list[Any]] | None = None) -> None:
        """Waits for the submitted work of these sets of slots (None: all in flight).

        Raises RuntimeError in a process forked within the run, which lacks the queues' threads, if batches are in flight.
        """
        if os.getpid() != self._process and any(queue.apart for queue in self.queues.values()):
            if self.begun:
                raise RuntimeError(FORKED)
            return
        if sets is None and self._filling:  # the feed is in flight too; None before the first batch
            self._filling.wait()
        for slots in self.begun if sets is None else sets:
            for slot in slots:
                for name, event in slot.events.items():
                    _named(name, slot, event.wait)

    def _begin(self, slots: list[Any]) -> None:
        for slot in slots:
            slot.take()
        self._put(self.plan.begin, slots)
        self.begun.append(slots)
        if len(self.begun) > self.ahead + 1:
            raise RuntimeError(f"schedule: {len(self.begun)} batches in flight, expected at most {self.ahead + 1}")

    def _fill(self, sets: Iterator[list[Any]], batches: Iterator[tuple[int, Any]]) -> None:
        queue = self.queues["feed"]
        self._filling = queue.run(self._fill_next, sets, batches, queue.name)

    def _fill_next(
        self, sets: Iterator[list[Any]], batches: Iterator[tuple[int, Any]], queue: str
    ) -> list[Any] | BaseException | None:
        """Copies the next batch into the next set of slots; None at the end of the feed.

        Errors and interrupts of the feed's code are returned: they belong to the next step; the current one is finished first.
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
        after = [one.events[name] for one in behind for name in stage.after if name in one.events]
        queue = self.queues[stage.queue]
        note = functools.partial(self.trace.note, queue.name, stage.name, slot.tick, slot.micro)
        slot.events[stage.name] = queue.run(_named, stage.name, slot, stage.work, slot, after=after, note=note)


def part(examples: int, parts: int, whole: int = 1) -> int:
    """Returns the maximum size of a micro-batch for a batch split into `parts` at multiples of `whole`."""
    return -(-examples // (parts * whole)) * whole


def _named(stage: str, slot: SlotState, work: Callable[..., Any], *arguments: Any) -> Any:
    """Runs the work; its exceptions get a note of the stage and the slot's step."""
    try:
        return work(*arguments)
    except Exception as failure:
        if not hasattr(failure, "__notes__"):
            failure.add_note(f"in stage {stage} of tick {slot.tick}, micro-batch {slot.micro}")
        raise


def broken_off(tick: int, failure: BaseException) -> str:
    """Returns the message for a model whose step failed midway."""
    if isinstance(failure, KeyboardInterrupt):
        return f"tick {tick} was aborted by a second interrupt"
    return f"tick {tick} failed midway: {str(failure) or type(failure).__name__}"


def _tick(slots: list[Any]) -> Tick:
    examples = sum(slot.count for slot in slots)
    loss = sum(slot.loss * slot.count for slot in slots) / slots[0].examples if examples else math.nan
    return Tick(slots[0].tick, examples, loss)


# Interface of a part (input rows, trunk, readout) to the route: the arrays and stages it needs.
#
# A part has up to three lists of stages. Each is a method with an argument `copy`, a `Copies`:
#
#     begin   up to the hidden vectors; trains nothing
#     finish  from the hidden vectors back to the gradient of the part's input
#     last    stages that no other part waits for


class Buffers(NamedTuple):
    """The arrays of a slot that a part reads and writes.

    widths    numbers per row of its float32 arrays, by name; dense stages use them on their device as NAME_dev
    crossing  names of the arrays also needed on the host: some of these, or of ids, bag_at, values, target, weight and losses
    """

    widths: dict[str, int]
    crossing: tuple[str, ...] = ()


BESIDE = {"ids": "values", "target": "weight"}  # optional arrays, copied in one stage with another array


class Copies:
    """A factory of the stages that copy a slot's arrays to and from the device.

    device    of the dense stages
    crossing  names of the arrays needed on both sides
    """

    def __init__(self, device: Any, crossing: Collection[str]):
        self._device, self._crossing = device, crossing

    def __call__(self, name: str, *after: str) -> list[Stage]:
        """Returns the stage "ARRAY in" or "ARRAY out", after the stages named; an empty list if no copy is needed."""
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
SKIPPED = 2  # steps excluded after a change: kernels load, threads start
DENSE = ("dense", "copy in", "copy out")  # queues of the dense device
MEASURED = 4  # steps measured per turn of a way
TURNS = (False, True, False, True)  # alternating, so that other load on the machine affects both alike


class Cores:
    """The use of cores in a run: stages sequentially on all cores, or dense and sparse stages concurrently on a part each.

    If the user leaves the choice open, both are measured in the first steps. This class owns the queues of each.

    dense, sparse  devices of the two kinds of stages
    threads        total CPU threads, divided among concurrent queues
    overlap        True, False, or None: measure. The choice affects no result, since results depend neither on the thread
                   count nor on the overlap of queues.
    spare          True: sequential stages use one thread, and the feed a second one, if there is one
    others         names of host queues that mostly wait: with overlap, each has an extra thread
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
        if apart and overlap is not False:  # a GPU needs only the core of the thread that feeds it
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
        """Returns the queues of sparse stages and feed; the feed has its own thread if threads > 1, otherwise the caller's."""
        spare = threads > 1
        share = max(threads - spare, 1)
        feed = self._sparse.queue("feed", 1) if spare else self._sparse.inline("feed", 1)
        return {"sparse": self._sparse.queue("sparse", share), "feed": feed}

    @property
    def queues(self) -> dict[str, Any]:
        """The active queues, by name."""
        return self.ways[self.overlapped]

    def note(self, schedule: Schedule) -> None:
        """Counts a finished step. While measuring, alternates between the two ways and finally selects the faster."""
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
        """Returns the measured median seconds per step of one way."""
        return statistics.median(self.seconds[overlapped])

    def line(self) -> str:
        """Returns the choice and its reason, in one printed line."""
        way = "dense and sparse stages overlapped" if self.overlapped else self._in_turn
        if self.measuring or not self.seconds[True]:
            return way
        turn, overlapped = (1e3 * self.median(way) for way in (False, True))
        return f"{way} (measured: {turn:.2f} ms per step in turn, {overlapped:.2f} ms overlapped)"

    def close(self) -> None:
        """Ends the threads of all queues."""
        for queues in self.ways.values():
            for queue in queues.values():
                queue.close()
