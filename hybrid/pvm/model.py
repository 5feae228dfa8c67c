"""The Predictive Vision Model: units that predict what they see, frame by frame.

    pvm = PVM.from_config("quick")
    for frame in video:
        out = pvm.step(frame)           # out.prediction, out.error, out.hidden[layer], out.heatmap

After Piekniewski et al., Unsupervised learning from continuous video in a scalable predictive recurrent network
(arXiv:1607.06854), and the CUDA implementation piekniewski/PVM_cuda.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import backend, check
from ..machine import available
from ..mpi import pvm
from ..mpi.group import Group
from ..mpi.pvm import SharedPipeline, Traffic
from ..schedule.guards import Held
from ..schedule.runner import Course, Runner
from ..schedule.schedule import Plan, Schedule, Tick, broken_off
from ..schedule.slot import FREE
from ..schedule.trace import Trace
from ..storage import checkpoint
from . import fields
from .config import MOST_STREAMS, Config
from .heads import Heads
from .layout import taken, weights_at
from .pipeline import Pipeline
from .presets import load, named
from .result import Results, StepResult, divergence
from .rules import wire
from .sizes import refuse_more, refuse_too_large, told_too_large
from .slot import FrameInput, FrameSlot, Rates
from .wiring import Wiring, custom, describe

# What the checkpoint of a model tells beside its arrays, and how it is read back.


class Saved(NamedTuple):
    """A model, but for its arrays.

    wiring  None: that of the configuration
    step    ticks so far
    """

    config: Config
    wiring: Wiring | None
    streams: int
    seed: int
    dtype: str
    step: int
    frozen: bool

    def facts(self) -> dict[str, Any]:
        """As JSON says it."""
        config, wiring = json.loads(self.config.to_json()), self.wiring and describe(self.wiring)
        return self._asdict() | {"config": config, "wiring": wiring}


def read(folder: str | Path) -> tuple[Saved, dict[str, Any]]:
    """What a checkpoint tells of its model, and the facts of the caller that were saved with it.

    Raises ValueError for a checkpoint of another kind, or one that tells of more than it holds.
    """
    saved, held = checkpoint.read_facts(folder), checkpoint.numbers(folder)
    if "pvm" not in saved:
        raise ValueError(f"{folder}: found a checkpoint of another kind, expected one of a Predictive Vision Model")
    with checkpoint.told(folder):
        own = saved["pvm"]
        config = Config.from_fields(own["config"])
        refuse_more(folder, config, held)
        found = Saved(
            config=config,
            wiring=custom(**own["wiring"]) if own["wiring"] else None,
            streams=own["streams"],
            seed=own["seed"],
            dtype=own["dtype"],
            step=check.whole("step", own["step"], 0),
            frozen=own["frozen"],
        )
        return found, saved["facts"]


# Frames and labels as users give them: checked, and made into arrays that a slot copies.

Arrays = tuple[np.ndarray, np.ndarray | None]  # the image, as `FrameInput` has it, and what the readouts learn


class Inputs:
    """The inputs of a model: frames of one shape, one a stream, and labels where it has readouts.

    frame         (rows, columns, channels)
    readouts      or None: labels are left aside
    ignore_depth  whether the 4th channel is taken as 0
    """

    def __init__(
        self, frame: tuple[int, int, int], streams: int, readouts: Heads | None, *, ignore_depth: bool = False
    ):
        self.frame, self.streams, self.readouts = frame, streams, readouts
        self.ignore_depth = ignore_depth and frame[2] == 4

    def item(self, item: Any) -> Arrays:
        """Of an item of what `PVM.run` takes: a `FrameBatch`, a pair (frame, label), or a frame."""
        if hasattr(item, "labelled"):
            label = item.box if item.labelled.all() else None
            return self.pair(item.image, label if label is None or self.streams > 1 else label[0])
        if isinstance(item, tuple) and len(item) == 2:
            return self.pair(*item)
        return self.pair(item, None)

    def pair(self, frame: Any, label: Any) -> Arrays:
        """Of a frame and its label, as `PVM.step` takes them. Raises ValueError for what does not fit."""
        image = self._image(frame)
        if self.ignore_depth:
            image = image.copy()
            image[..., 3] = 0
        if label is None or not self.readouts:
            return image, None
        return image, self._heat([label] if self.streams == 1 else label)

    def _image(self, frame: Any) -> np.ndarray:
        """(B, rows, columns, channels)."""
        try:
            image = np.asarray(frame)
        except (ValueError, TypeError) as failure:
            raise ValueError(f"frame: found {type(frame).__name__} that is no array ({failure})") from None
        image = image[None] if image.ndim == 3 and self.streams == 1 else image
        expected = (self.streams, *self.frame)
        if image.shape != expected:
            shown = expected[1:] if self.streams == 1 else expected
            raise ValueError(
                f"frame: found shape {image.shape}, expected {shown}: {'' if self.streams == 1 else 'streams, '}rows, "
                f"columns, channels; {_remedy(image.shape, expected)}"
            )
        if image.dtype != np.uint8 and not (image.dtype.kind in "fb" and image.min() >= 0 and image.max() <= 1):
            found = f"numbers from {image.min()} to {image.max()}" if image.dtype.kind in "fiu" else "no numbers"
            raise ValueError(
                f"frame: found {found} ({image.dtype}), expected uint8, or floats from 0 to 1; "
                "frame.astype(np.uint8) for numbers to 255"
            )
        return image

    def _heat(self, labels: Any) -> np.ndarray:
        """What the readouts learn, (B, Y), of a label each stream."""
        assert self.readouts is not None
        if len(labels) != self.streams:
            raise ValueError(f"label: found {len(labels)} labels, expected {self.streams}, one for each stream")
        return np.stack([self.readouts.target(self._maps(label)) for label in labels])

    def _maps(self, label: Any) -> list[np.ndarray]:
        assert self.readouts is not None
        if isinstance(label, list):
            shapes = [np.shape(heat) for heat in label]
            if shapes != self.readouts.shapes:
                raise ValueError(f"label: found heatmaps {shapes}, expected {self.readouts.shapes}")
            for heat in label:
                check.finite("label", np.asarray(heat))
            return label
        box = check.array("label", np.asarray(label, np.float32), (4,), np.float32)
        check.finite("label", box)
        return self.readouts.heats(box, self.frame)


def items(frames: Any, first: int) -> Iterator[Any]:
    """The items from tick `first` on: of a feed those of its ticks, of any other iterable all that it gives.

    Raises ValueError for what is neither.
    """
    if hasattr(frames, "__getitem__") and hasattr(frames, "__len__"):
        if hasattr(frames, "streams"):
            return (frames[tick] for tick in range(first, len(frames)))
        if not hasattr(frames, "__iter__"):
            return (frames[number] for number in range(len(frames)))
    try:
        return iter(frames)
    except TypeError:
        raise ValueError(
            f"frames: found {type(frames).__name__}, expected a feed, or an iterable of frames or of (frame, label)"
        ) from None


def _remedy(found: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """What to do with an array of this shape, in terms of NumPy or Pillow."""
    streams, rows, columns, channels = expected
    if streams > 1 and len(found) == 4 and found[1:] == expected[1:]:
        return f"give a frame for each of the {streams} streams"
    if found[-2:] == (rows, columns):
        return "put the channels last, with np.moveaxis or frame[..., None]"
    if found[-3:-1] == (rows, columns) and len(found) > 2 and found[-1] != channels:
        return f"give it {channels} channel{'s' * (channels > 1)}"
    return f"resize it: np.asarray(PIL.Image.fromarray(frame).resize(({columns}, {rows})))"


# Frames through a pipeline, tick by tick: `step` and `run` of a Predictive Vision Model.

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


class PVM(Stepper):
    """A model and its state.

    config   a Config, see there
    wiring   another graph than that of the configuration, see `wiring.custom`; its layers must be as many
    device   "cpu", "cuda:0" or None: a GPU when one can be used
    streams  how many videos it sees at once, 1 to 16; they share the weights, whose changes are summed
    threads  CPU threads (None: all cores)
    seed     of the weights
    dtype    float32; float64 on the CPU
    ranks    all processes that share the units; None: this one has them all. Each makes the same calls with the same arguments
             in the same order, gets the same results, bit for bit those of one process, and has the arrays of its own units
    cut      which rank has which units: "blocks" of the frame and of all layers above it, of equal cost, or "cost", ranges
             of the units' numbers

    frozen    while True nothing learns
    tick      ticks so far; `step_number` is another name for it
    torn      why the parameters are no longer those of a finished tick; None while they are
    trace     of the last run, see hybrid/schedule/trace.py
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
        ranks: Group | None = None,
        cut: str = "blocks",
    ):
        check.whole("streams", streams, 1, MOST_STREAMS)
        dtype = np.dtype(dtype)
        if wiring is None:
            refuse_too_large(config, 1 + config.moves, dtype.itemsize, ranks.size if ranks else 1)
        graph = wire(config) if wiring is None else wiring
        if len(graph.grids) != len(config.grids):
            raise ValueError(
                f"wiring: found {len(graph.grids)} layers, expected {len(config.grids)} as config.grids has"
            )
        chosen = backend.choose(device)
        settings: dict[str, Any] = {"streams": streams, "threads": threads or available(), "seed": seed}
        settings["dtype"] = _dtype(dtype, chosen)
        self.ranks, self.cut = ranks, cut
        self._shared: SharedPipeline | None = None
        with told_too_large():
            if ranks and ranks.size > 1:
                self._shared = SharedPipeline(config, graph, chosen, ranks=ranks, cut=cut, **settings)
            pipeline = self._shared or Pipeline(config, graph, chosen, **settings)
        super().__init__(config, pipeline)
        self.seed, self._own_wiring = seed, wiring is not None
        self.wiring, self.backend, self.layout = graph, chosen, self.pipeline.layout
        self.streams, self.threads, self.dtype = streams, self.pipeline.threads, self.pipeline.dtype
        self.readouts = self.pipeline.readouts
        self.weights, self.velocity = self.pipeline.weights, self.pipeline.velocity

    @classmethod
    def from_config(cls, source: str | Path | Config, **settings: Any) -> "PVM":
        """The model of a Config, of a named configuration ("quick", "small", ...) or of a file; see `presets.load`.

        settings  those of PVM
        """
        if isinstance(source, Config):
            return cls(source, **settings)
        config = load(source)[0]
        with named(source):
            return cls(config, **settings)

    @property
    def step_number(self) -> int:
        """Ticks so far: another name for `tick`."""
        return self.tick

    @step_number.setter
    def step_number(self, tick: int) -> None:
        self.tick = tick

    def prediction(self) -> np.ndarray:
        """The `StepResult.prediction` of the last tick, (B, rows, columns, channels); of a loaded model, too."""
        self.settle()
        prediction = self.pipeline.prediction
        return prediction.shown(self.pipeline.predicted(self.tick - 1, prediction.index))

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rate and momentum of each layer, (L,), in force at the next tick."""
        return self.config.rates(self.tick)

    def set_rate(self, rate: float, layer: int | None = None, momentum: float | None = None) -> None:
        """Set the rate from the next tick on. It becomes an event of the configuration's schedule, which drops events that no
        longer matter.

        layer     None: all layers
        momentum  None: as it is. ValueError for one other than 0 in a model that began without momentum
        """
        if momentum and self.velocity is None:
            raise ValueError(
                f"momentum: found {momentum} for a model without momentum, expected None or 0; put one into its first schedule"
            )
        event = (self._next_step(), layer, float(rate), momentum)
        self.config = self.config.with_rate(event, self.tick - 1)

    # What was learned

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """Copies of a unit's matrices (outputs, inputs) and biases (outputs,), and where there is momentum of their
        velocities; by name, see `fields.matrices`.

        unit  its number among all, as errors name it and `wiring` counts
        """
        check.whole("unit", unit, 0, len(self.wiring.hidden) - 1)
        self.settle()
        layout, flat = taken(self.pipeline.whole, np.array([unit])), self.pipeline.weights_of(unit)
        own = fields.matrices(layout, self.config, 0, flat["weights"])
        if "velocity" not in flat:
            return own
        velocity = fields.matrices(layout, self.config, 0, flat["velocity"])
        return own | {f"{name} velocity": array for name, array in velocity.items()}

    def receptive_field(self, layer: int, unit: int) -> fields.Field:
        """The receptive fields of a unit's hidden numbers in the frame, see `fields.Projection`.

        unit  its number within the layer, as in `StepResult.hidden[layer]`
        """
        return self.projection().field(fields.unit_of(self.wiring, layer, unit))

    def projection(self) -> fields.Projection:
        """The back-projection of `receptive_field`, for many units of the model as it stands.

        Raises ValueError where ranks share the units.
        """
        if self._shared:
            raise ValueError(
                f"projection: found units that {self._shared.group.size} ranks share, expected all in one process; save the "
                "model, and load it in a process without ranks"
            )
        self.settle()
        arrays = {name: array for name, array in self.arrays().items() if name in ("weights", "low", "high")}
        arrays["tape"] = self.pipeline.tape(self.tick - 1)
        host = {name: self.backend.device.to_host(array) for name, array in arrays.items()}
        return fields.Projection(self.wiring, self.layout, self.config, host)

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
        units = int(weights_at(self.pipeline.whole)[-1])
        return units, self.readouts.weights.size if self.readouts else 0

    @property
    def traffic(self) -> Traffic:
        """Numbers that a tick moves between ranks; none without ranks."""
        if self._shared:
            return self._shared.traffic
        return Traffic(0, 0, self.streams * int(self.layout.hidden.sum()))

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Write a checkpoint, from which `load` goes on with the same numbers, on this device or another.

        facts  of the caller, which `load` returns; JSON-able

        Raises ValueError for a torn model, and for numbers that are not finite, which may not show in an error before a
        later tick; then the checkpoint before stays. See hybrid/storage/checkpoint.py for what else it raises. Of ranks all
        save, rank 0 writes what one process would, and what one raises all raise.
        """
        told = self._told(facts)
        if self._shared:
            with self._shared.group.together():
                self._check_finite()
            pvm.Kept(self._shared).save(folder, told)
        else:
            self._check_finite()
            checkpoint.save(folder, self.fetch(), told)

    def _told(self, facts: dict[str, Any] | None) -> dict[str, Any]:
        """What a checkpoint tells beside its arrays, of a model that stands between two ticks."""
        self._check_whole()
        if self.under_way:
            raise ValueError(
                f"save: {self.under_way} ticks are under way; of a run with `ahead`, save after a complete tick"
            )
        self.settle()
        wiring = self.wiring if self._own_wiring else None
        own = Saved(self.config, wiring, self.streams, self.seed, self.dtype.name, self.tick, self.frozen)
        return {"pvm": own.facts(), "facts": facts or {}}

    def _check_finite(self) -> None:
        for name, array in self.fetch().items():
            check.finite(f"pvm, before tick {self.tick}: {name}", array)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | None = None,
        threads: int | None = None,
        ranks: Group | None = None,
        cut: str = "blocks",
    ) -> tuple["PVM", dict[str, Any]]:
        """The model of a checkpoint, or of a run's latest, and the facts saved with it.

        device, threads, ranks, cut  as of PVM, wherever it was before, and on however many ranks

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another kind.
        """
        own, facts = read(folder)
        with checkpoint.told(folder):
            model = cls(
                own.config,
                wiring=own.wiring,
                device=device,
                streams=own.streams,
                threads=threads,
                seed=own.seed,
                dtype=own.dtype,
                ranks=ranks,
                cut=cut,
            )
            model.restore(folder)
            model.tick, model.frozen = own.step, own.frozen
        return model, facts

    def restore(self, folder: str | Path) -> None:
        """Take the arrays of a checkpoint of the same model."""
        if self._shared:
            pvm.Kept(self._shared).load(folder)
            return
        arrays = self.fetch()
        checkpoint.load_into(folder, arrays)
        self.put(arrays)


def _dtype(dtype: np.dtype, device: backend.Backend) -> np.dtype:
    """The dtype itself; ValueError where the device does not compute in it."""
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype: found {dtype}, expected float32 or float64")
    if dtype == np.float64 and not device.device.float64:
        raise ValueError(f"dtype: found float64 on {device.name}, expected float32; float64 is computed on the CPU")
    return dtype
