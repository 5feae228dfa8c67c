"""Frames through a pipeline, tick by tick: `step` and `run` of a Predictive Vision Model."""

import itertools
from collections.abc import Iterator
from typing import Any

from .. import check
from ..engine.runner import Course, Runner
from ..engine.schedule import Plan, Schedule, Tick, broken_off
from ..engine.slot_state import FREE
from ..engine.trace import Trace
from ..interrupt import Held
from .config import Config
from .inputs import Arrays, Inputs, items
from .pipeline import Pipeline
from .rates import Rates
from .result import Results, StepResult, divergence
from .slot import FrameInput, FrameSlot

MOST_AHEAD = 64
END = object()  # of an iterator, whose items may be None
DELAY = 1  # frames that are copied to a GPU while it works on the one before; changes no number


class Stepper(Runner[StepResult]):
    """What takes frames through a pipeline.

    config    with the schedule as it stands now
    pipeline  the arrays, and the stages that a frame goes through
    frozen    while True nothing learns
    """

    def __init__(self, config: Config, pipeline: Pipeline):
        super().__init__("pvm", "give every thread a model of its own, as PVM.load does")
        self.config, self.pipeline, self.frozen = config, pipeline, False
        wiring, readouts, streams = pipeline.wiring, pipeline.readouts, pipeline.streams
        self._inputs = Inputs(wiring.frame, streams, readouts, ignore_depth=config.ignore_depth)
        self._rates = Rates(pipeline.layer, pipeline.layout, config)
        self._results = Results(wiring, pipeline.whole, pipeline.prediction, readouts, streams, pipeline.threads)
        self._step_slot = pipeline.slot()

    def step(self, frame: Any, label: Any = None) -> StepResult:
        """Take in a frame, learn from it, predict the next.

        frame  (rows, columns, channels), or of B > 1 streams (B, rows, columns, channels); uint8, or floats in 0..1: an
               array, or anything that `np.asarray` converts, such as a Pillow image
        label  where the object is, for the readouts to learn: a box (4,) x, y, width, height in pixels, of width 0 where it
               is absent; or a list of heatmaps in 0..1, one for each of `readouts.shapes`. Of B streams a list of B labels

        An interrupt (SIGINT) waits for the end of the step; a second one breaks it off, and the model is torn. A run that
        its caller has left between two ticks ends here.

        Raises ValueError for a frame of another shape or with numbers outside of 0..1, and for a torn model;
        FloatingPointError, naming layer, unit and tick, where the model diverges: then it is torn, too. RuntimeError while
        another thread's step is under way.
        """
        self._check_whole()
        with self._runs.ended(), Held():
            slot, arrays = self._step_slot, self._inputs.pair(frame, label)
            try:
                slot.fill(self.tick, 0, self._frame_input(self.tick, arrays, complete=True), 0, self.pipeline.streams)
                slot.take()
                for stage in self.pipeline.stages():
                    self.pipeline.inline.run(stage.work, slot)
                self._finish(slot)
                slot.release()
            except BaseException as failure:
                self._rates.forget()
                if slot.state != FREE:  # otherwise it could not be filled, and nothing has moved
                    self.torn = self.torn or broken_off(self.tick, failure)
                raise
            return self._results.of(slot)

    def _frame_input(self, tick: int, arrays: Arrays, complete: bool) -> FrameInput:
        return FrameInput(*arrays, complete, self._rates.at(tick, self.config, self.frozen))

    def run(self, frames: Any, *, every: int = 1, ahead: int = 0) -> Iterator[StepResult]:
        """Step through frames to their end.

        frames  an iterable of frames, or of pairs (frame, label), as `step` takes them: an array, a list, a generator, a
                clip. Or a feed (hybrid/feeds/video/frames.py), which is anything with `streams`, a length and feed[tick] ->
                `FrameBatch`: from the model's tick on
        every   yields every tick: complete where its number is a multiple of this, otherwise with the error alone
        ahead   how many ticks a GPU may have begun when the caller gets one that is not complete, so that the GPU does not
                wait for the caller; no number changes. While ticks are under way `save` is refused; after a complete tick
                there are none. A caller that stops gets the model as it is after the ticks under way

        Between two ticks the caller may save, freeze or stop; a freeze begins with the next frame that is copied into a
        slot. On a GPU the next frame is decoded and copied while the device works on this one. An interrupt (SIGINT) waits
        for the end of the tick: KeyboardInterrupt leaves the model between two ticks, and so does whatever the feed raises;
        a second interrupt breaks the tick off. When a run stops, an iterator has been asked for one frame that the model
        has not taken in, on a GPU for up to `ahead` + 2.

        Raises what `step` raises, and what the feed raises, with a note of the tick.
        """
        return self._follow(lambda: self._laid_out(frames, every, ahead))

    def _laid_out(self, frames: Any, every: int, ahead: int) -> Course:
        """The schedule of a run, and its frames."""
        every, ahead = check.whole("every", every, 1), check.whole("ahead", ahead, 0, MOST_AHEAD)
        batches = self._batches(items(frames, self.tick), every)
        schedule = self._scheduled(self.pipeline.queues(), ahead)
        return Course(schedule, batches, hold=lambda slots: ahead > 0 and slots[0].complete)

    def _scheduled(self, queues: dict[str, Any], ahead: int) -> Schedule:
        """The schedule of a run, and its buffers."""
        self.trace = Trace()
        self._rates.forget()
        stages = self.pipeline.stages()
        begin = stages if ahead else [stage for stage in stages if stage.queue == "copy in"]
        delay = 0 if self.pipeline.backend.device.threads else max(ahead, DELAY)
        slots = [[self.pipeline.slot()] for _ in range(delay + 2)]
        return Schedule(Plan(begin, stages[len(begin) :], []), slots, queues, delay, self.trace)

    def _count(self, tick: Tick) -> None:
        self._finish(self._slot_of(tick))

    def _result(self, tick: Tick) -> StepResult:
        return self._results.of(self._slot_of(tick))

    def _slot_of(self, tick: Tick) -> FrameSlot:
        assert self._schedule
        found: FrameSlot = next(slot for (slot,) in self._schedule.slots if slot.tick == tick.number)
        return found

    def _leave(self) -> None:
        """Unless a tick failed, those under way are finished and counted."""
        assert self._schedule
        try:
            if not self.torn:
                self.settle()
                self.tick += self.under_way
            for queue in self._schedule.queues.values():
                queue.close()
        finally:
            self._rates.forget()

    def _next_step(self) -> int:
        """The first tick whose frame is not in a slot yet."""
        return self.tick + (len(self._schedule.slots) - 1 if self._schedule else 0)

    def _batches(self, frames: Iterator[Any], every: int) -> Iterator[tuple[int, FrameInput]]:
        for tick in itertools.count(self.tick):
            try:
                item = next(frames, END)
                if item is END:
                    return
                given = self._frame_input(tick, self._inputs.item(item), complete=tick % every == 0)
            except BaseException as failure:
                failure.add_note(f"in the feed, at tick {tick}")
                raise
            yield tick, given

    def _finish(self, slot: FrameSlot) -> None:
        """The tick is past, unless the model has diverged."""
        if why := divergence(slot, self.pipeline.wiring):
            self.torn = why
            raise FloatingPointError(why)
        self.tick = slot.tick + 1

    @property
    def under_way(self) -> int:
        """How many ticks a run has begun beyond the one that its caller has."""
        found = self._schedule
        return len(found.begun) if found and not found.plan.finish else 0
