"""The Predictive Vision Model: units that predict what they see, frame by frame.

    pvm = PVM.from_config("quick")
    for frame in video:
        out = pvm.step(frame)           # out.prediction, out.error, out.hidden[layer], out.heatmap

After Piekniewski et al., Unsupervised learning from continuous video in a scalable predictive recurrent network
(arXiv:1607.06854), and the CUDA implementation piekniewski/PVM_cuda.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import backend, check
from ..engine.runner import Course, Runner
from ..engine.schedule import Plan, Schedule, Tick, broken_off
from ..engine.slot_state import FREE
from ..engine.trace import Trace
from ..interrupt import Held
from ..storage import checkpoint
from . import fields, saved
from .config import Config
from .inputs import Arrays, Inputs, items
from .pipeline import Pipeline
from .presets import load
from .rates import Rates
from .result import Results, StepResult, divergence
from .rules import wire
from .saved import Saved
from .sizes import refuse_too_large
from .slot import FrameInput, FrameSlot
from .validate import MOST_STREAMS
from .wiring import Wiring

MOST_AHEAD = 64
END = object()  # of an iterator; it may give None
DELAY = 1  # frames that are on their way to a GPU while it works on the one before; changes no number


class PVM(Runner[StepResult]):
    """A model and its state.

    config   a Config, see there
    wiring   another graph than that of the configuration, see `wiring.custom`; its layers must be as many
    device   "cpu", "cuda:0" or None: a GPU when one can be used
    streams  how many videos it sees at once, 1 to 16; they share the weights, whose changes are summed
    threads  CPU threads (None: all cores)
    seed     of the weights
    dtype    float32; float64 on the CPU

    frozen    while True nothing learns
    tick      ticks so far; `step_number` is another name for it
    torn      why the parameters are no longer those of a finished tick; None while they are
    trace     of the last run, see hybrid/engine/trace.py
    pipeline  the arrays, and the stages that a frame goes through

    Raises ValueError for settings that do not fit together, MemoryError where the model does not fit the device.
    """

    def __init__(
        self,
        config: Config,
        *,
        wiring: Wiring | None = None,
        device: str | None = None,
        streams: int = 1,
        threads: int | None = None,
        seed: int = 0,
        dtype: Any = np.float32,
    ):
        from cpu.threads import available

        super().__init__("pvm", "give every thread a model of its own, as PVM.load does")
        check.whole("streams", streams, 1, MOST_STREAMS)
        self.config, self.seed, self._own_wiring, dtype = config, seed, wiring is not None, np.dtype(dtype)
        if wiring is None:
            refuse_too_large(config, 1 + config.moves, dtype.itemsize)
        self.wiring = wire(config) if wiring is None else wiring
        layers, expected = len(self.wiring.grids), len(config.grids)
        if layers != expected:
            raise ValueError(f"wiring: found {layers} layers, expected {expected} as config.grids has")
        self.backend = backend.choose(device)
        self.streams, self.threads, self.dtype = streams, threads or available(), _dtype(dtype, self.backend)
        self.pipeline = Pipeline(
            config, self.wiring, self.backend, streams=streams, threads=self.threads, seed=seed, dtype=self.dtype
        )
        self.layout, self.readouts = self.pipeline.layout, self.pipeline.readouts
        self.weights, self.velocity = self.pipeline.weights, self.pipeline.velocity
        self.frozen = False
        self._inputs = Inputs(self.wiring.frame, streams, self.readouts, ignore_depth=config.ignore_depth)
        self._rates = Rates(self.wiring, self.layout, config)
        self._results = Results(self.wiring, self.layout, self.pipeline.prediction, self.readouts, streams)
        self._step_slot = self.pipeline.slot()

    @classmethod
    def from_config(cls, source: str | Path | Config, **settings: Any) -> "PVM":
        """The model of a Config, of a named configuration ("quick", "small", ...) or of a file; see `named.load`.

        settings  `compat` of `named.load`, and those of PVM
        """
        compat = settings.pop("compat", None)
        config = source if isinstance(source, Config) else load(source, compat=compat)[0]
        return cls(config, **settings)

    @property
    def step_number(self) -> int:
        """Ticks so far."""
        return self.tick

    @step_number.setter
    def step_number(self, tick: int) -> None:
        self.tick = tick

    # Frames

    def step(self, frame: Any, label: Any = None) -> StepResult:
        """See a frame, learn from it, predict the next.

        frame  (rows, columns, channels) or (B, rows, columns, channels), uint8 or floats in 0..1: an array, or whatever
               `np.asarray` makes one of, such as a Pillow image
        label  where the object is, for the readouts to learn: a box (4,) x, y, width, height in pixels, width 0: not there;
               or a list of heatmaps in 0..1, one for each of `readouts.shapes`; of B streams a list of B such

        Raises ValueError for a frame of another shape or with numbers outside of 0..1, and FloatingPointError, naming layer,
        unit and tick, where the model diverges: then it refuses to go on, and the last checkpoint stands. An interrupt
        (SIGINT) waits for the end of the step; a second one breaks it off, which the model then refuses to go on from.
        RuntimeError while another thread's step is under way. A run that was left between two ticks ends here.
        """
        self._check_whole()
        with self._runs.ended(), Held():
            slot, arrays = self._step_slot, self._inputs.pair(frame, label)
            try:
                slot.fill(self.tick, 0, self._frame_input(self.tick, arrays, complete=True), 0, self.streams)
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

        frames  an iterable, also one that ends or fails half-way: arrays, lists, generators, clips; of frames, or of pairs
                (frame, label), as `step` takes them. Or a feed (hybrid/feeds/video/frames.py): anything with `streams`, a
                length and feed[tick] -> `FrameBatch`: from the tick where this model stands

        On a GPU the next frame is decoded and sent while the device works on this one, and what comes home does not stop
        it. Yields every tick: complete where its number is a multiple of `every`, otherwise with the error alone. Between
        two ticks the caller may save, freeze or stop; a freeze begins with the next frame that is filled in. An interrupt
        (SIGINT) waits for the end of the tick: KeyboardInterrupt leaves the model between two ticks too, and so does
        whatever the feed raises; a second one breaks off.

        ahead  ticks that a GPU may have begun when the caller is given one that is not complete, so that it need not wait
               for the host; no number changes. Saving is then refused where ticks are under way, which are none after a
               complete one, and a caller that stops finds the model behind those that were.

        A caller that stops may find that an iterator has given one frame more than was seen, or on a GPU up to `ahead` + 2.

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
        delay = 0 if self.backend.device.threads else max(ahead, DELAY)
        slots = [[self.pipeline.slot()] for _ in range(delay + 2)]
        return Schedule(Plan(begin, stages[len(begin) :], []), slots, queues, delay, self.trace)

    def _count(self, tick: Tick) -> None:
        self._finish(self._slot_of(tick))

    def _result(self, tick: Tick) -> StepResult:
        return self._results.of(self._slot_of(tick))

    def _slot_of(self, tick: Tick) -> FrameSlot:
        assert self._schedule
        return next(slot for (slot,) in self._schedule.slots if slot.tick == tick.number)

    def _leave(self) -> None:
        """Where no tick failed, the model stands behind those that were under way."""
        assert self._schedule
        try:
            if not self.torn:
                self.settle()
                self.tick += self.under_way
            for queue in self._schedule.queues.values():
                queue.close()
        finally:
            self._rates.forget()

    def expected(self) -> np.ndarray:
        """The next frame as the model expects it, (B, rows, columns, channels) floats in 0..1: what a dream shows it.

        With compat "cuda2023" what that implementation dreams: the frame after the next, not taken back from 0.1..0.9.
        """
        return self.pipeline.prediction.dreamt(self._last_parts(self.pipeline.prediction.dream))

    def prediction(self) -> np.ndarray:
        """What the last tick gave as `StepResult.prediction`, (B, rows, columns, channels): a loaded model has it too."""
        return self.pipeline.prediction.shown(self._last_parts(self.pipeline.prediction.index))

    def _last_parts(self, places: list[np.ndarray]) -> np.ndarray:
        self.settle()
        tape = self.backend.device.to_host(self.pipeline.tape(self.tick - 1))
        return np.stack([tape[:, index] for index in places])

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rate and momentum of each layer, (L,), in force at the next tick."""
        return self.config.rates(self.tick)

    def set_rate(self, rate: float, layer: int | None = None, momentum: float | None = None) -> None:
        """From the next tick on; of one layer or of all. It becomes part of the configuration's schedule, which forgets what
        is over.
        """
        if momentum and self.velocity is None:
            raise ValueError(f"momentum: found {momentum} for a model without; it must begin with one in its schedule")
        event = (self._next_step(), layer, float(rate), momentum)
        self.config = self.config.with_rate(event, self.tick - 1)

    def _next_step(self) -> int:
        """The first tick whose frame is not filled in yet."""
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

    # What was learned

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """Copies of a unit's matrices and biases: "NAME.weights" (outputs, inputs) and "NAME.bias" (outputs,), by dense layer.

        unit  its number among all, as errors name it and `wiring` counts

        NAME is "hidden" and "prediction"; of a complex unit "first" before them; of a residual one "context" (of a complex
        residual one "context 1", "context 2", then "first") and "context prediction" too. Inputs and outputs are in the
        order of the tape, see hybrid/pvm/layout.py. Where there is momentum "NAME.weights velocity" and
        "NAME.bias velocity" follow, of the same shapes.
        """
        check.whole("unit", unit, 0, len(self.wiring.hidden) - 1)
        self.settle()
        found = fields.matrices(self.layout, self.config, unit, self.backend.device.to_host(self.weights))
        if self.velocity is None:
            return found
        velocity = self.backend.device.to_host(self.velocity)
        moves = fields.matrices(self.layout, self.config, unit, velocity)
        return found | {f"{name} velocity": array for name, array in moves.items()}

    def receptive_field(self, layer: int, unit: int) -> fields.Field:
        """What a unit's hidden numbers look at in the frame: `row` and `column` where the region begins that reaches it, and
        `weights` (hidden numbers, rows, columns, channels) float64.

        unit  its number within the layer, as in `StepResult.hidden[layer]`

        The weights are a linear back-projection: by how much the sum that goes into the activation of each hidden number
        changes with each pixel of a frame, as that frame climbs a layer a tick. In layer 0 of simple units these are the
        input weights of the frame (times 0.8 where it is squeezed); above, products of the input weights of all layers,
        each number in between counting by the slope of its activation at the last tick (of several streams: the mean).
        What comes sideways, from above or from the frame before is left out.
        """
        unit = fields.unit_of(self.wiring, layer, unit)
        return self.projection().field(unit)

    def projection(self) -> fields.Projection:
        """The back-projection of `receptive_field`, for many units of the model as it stands."""
        self.settle()
        arrays = {name: array for name, array in self.arrays().items() if name in ("weights", "low", "high")}
        arrays["tape"] = self.pipeline.tape(self.tick - 1)
        host = {name: self.backend.device.to_host(array) for name, array in arrays.items()}
        return fields.Projection(self.wiring, self.layout, self.config, host)

    def _finish(self, slot: FrameSlot) -> None:
        """The tick is past, unless the model has diverged."""
        if why := divergence(slot, self.wiring):
            self.torn = why
            raise FloatingPointError(why)
        self.tick = slot.tick + 1

    # Keeping

    def arrays(self) -> dict[str, Any]:
        """Weights, velocity and state by name, where they are computed; those of the device are read by `fetch`."""
        return self.pipeline.arrays()

    def fetch(self) -> dict[str, np.ndarray]:
        """The same as NumPy arrays; live ones on the CPU."""
        return self.pipeline.fetch()

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays, named as `arrays` names them, to where they are computed."""
        self.pipeline.put(arrays)

    @property
    def size(self) -> tuple[int, int]:
        """Parameters of the units, and of the readouts."""
        return self.weights.size, self.readouts.weights.size if self.readouts else 0

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Write a checkpoint, from which `load` goes on with the same numbers, on this device or another.

        facts  whatever else should come back, JSON-able

        Raises ValueError where a tick failed half-way, or has left numbers that are not finite, which shows in the error of
        a later tick only; then the checkpoint before stands. See hybrid/storage/checkpoint.py for the rest.
        """
        self._check_whole()
        if self.under_way:
            raise ValueError(
                f"save: {self.under_way} ticks are under way; of a run with `ahead`, save after a complete tick"
            )
        self.settle()
        arrays = self.fetch()
        for name, array in arrays.items():
            check.finite(f"pvm, before tick {self.tick}: {name}", array)
        wiring = self.wiring if self._own_wiring else None
        own = Saved(self.config, wiring, self.streams, self.seed, self.dtype.name, self.tick, self.frozen)
        checkpoint.save(folder, arrays, {"pvm": own.facts(), "facts": facts or {}})

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str | None = None, threads: int | None = None
    ) -> tuple["PVM", dict[str, Any]]:
        """The model of a checkpoint, or of a run's latest, and the facts saved with it.

        device, threads  as of PVM, wherever it was before

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another kind.
        """
        own, facts = saved.read(folder)
        with checkpoint.told(folder):
            model = cls(
                own.config,
                wiring=own.wiring,
                device=device,
                streams=own.streams,
                threads=threads,
                seed=own.seed,
                dtype=own.dtype,
            )
            model.restore(folder)
            model.tick, model.frozen = own.step, own.frozen
        return model, facts

    def restore(self, folder: str | Path) -> None:
        """Take the arrays of a checkpoint of the same model."""
        arrays = self.fetch()
        checkpoint.load_into(folder, arrays)
        self.put(arrays)

    @property
    def under_way(self) -> int:
        """Ticks that a run has begun ahead of the one that its caller has."""
        found = self._schedule
        return len(found.begun) if found and not found.plan.finish else 0


def _dtype(dtype: np.dtype, device: backend.Backend) -> np.dtype:
    """The dtype itself; ValueError where the device does not compute in it."""
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype: found {dtype}, expected float32 or float64")
    if dtype == np.float64 and not device.device.float64:
        raise ValueError(f"dtype: found float64 on {device.name}, expected float32; float64 is computed on the CPU")
    return dtype
