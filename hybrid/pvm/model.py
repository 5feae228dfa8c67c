"""The Predictive Vision Model: units that predict their input, frame by frame.

    pvm = PVM.from_config("quick")
    for frame in video:
        out = pvm.step(frame)           # out.prediction, out.error, out.hidden[layer], out.heatmap

After Piekniewski et al., Unsupervised learning from continuous video in a scalable predictive recurrent network
(arXiv:1607.06854), and the CUDA implementation piekniewski/PVM_cuda.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import backend, check, console, machine
from ..schedule.guards import Held
from ..schedule.runner import Course, Runner
from ..schedule.schedule import Plan, Schedule, Tick, broken_off
from ..schedule.slot import FREE
from ..schedule.trace import Trace
from ..storage import checkpoint
from . import fields, heads
from .config import MOST_STREAMS, Config
from .layout import taken, tape_layout, weights_at
from .pipeline import Pipeline, copied
from .presets import load, named
from .slot import FrameInput, FrameSlot, Rates
from .wiring import Wiring, custom, describe, wire

MOST_AHEAD = 64
END = object()  # of an iterator, whose items may be None
REMEDY = "make grids, block, channels, hidden, lateral_radius or the readout smaller"
IN_FLIGHT = 1  # frames prefetched to a GPU during the previous tick; does not affect results
Arrays = tuple[np.ndarray, np.ndarray | None]  # the image, as in `FrameInput`, and the targets of the readouts


class StepResult(NamedTuple):
    """The result of a tick. With one stream, the arrays lack the first axis.

    tick        its number, from 0
    error       (L,) float64: for each layer the mean |error| of the units' predictions of this frame, in input scale (squeezed,
                if configured)
    prediction  (B, rows, columns, channels) in 0..1: the next frame
    hidden      L arrays (B, units of the layer, hidden activations): the published values of each layer
    heatmaps    (B, rows, columns) each, in 0..1: one of tile readouts, one per layer of unit readouts; [] without readouts
    examples    frames that it learned from: one per stream

    In an incomplete tick, see `PVM.run`, prediction is None, hidden and heatmaps are [].
    """

    tick: int
    error: np.ndarray
    prediction: np.ndarray | None
    hidden: list[np.ndarray]
    heatmaps: list[np.ndarray]
    examples: int = 1

    @property
    def number(self) -> int:
        """The tick's number, under the name used by ticks of an `Engine`."""
        return self.tick

    @property
    def loss(self) -> float:
        """The mean of `error` over the layers."""
        return float(self.error.mean())

    @property
    def heatmap(self) -> np.ndarray | None:
        """The heatmap, or the mean of several, of the size of the largest; None without readouts."""
        if len(self.heatmaps) < 2:
            return self.heatmaps[0] if self.heatmaps else None
        largest = max((heat.shape[-2:] for heat in self.heatmaps), key=lambda shape: shape[0] * shape[1])
        if self.heatmaps[0].ndim == 2:
            return heads.combine(self.heatmaps, largest)
        return np.stack([heads.combine(list(heats), largest) for heats in zip(*self.heatmaps, strict=True)])


class PVM(Runner[StepResult]):
    """A model and its state.

    config   a Config, see there
    wiring   another graph than that of the configuration, see `wiring.custom`, with the same number of layers
    device   "cpu", "cuda:0" or None: a GPU if available
    streams  number of concurrent videos, 1 to 16; they share the weights, whose updates are summed
    threads  CPU threads (None: all cores)
    seed     of the weights
    dtype    float32; float64 on the CPU
    ranks    the processes that partition the units (`hybrid.mpi.pvm.Ranks`); None: no partition. Each rank makes the same calls
             with the same arguments in the same order, gets the same results, bit-identical to those of one process, and holds
             the arrays of its own units

    frozen    while True nothing learns
    tick      number of past ticks
    torn      the reason for inconsistent parameters; None if they are those of a finished tick
    trace     of the last run, see hybrid/schedule/trace.py
    pipeline  the arrays, and the stages of a frame
    readouts  `Heads`, or None
    layout    the layout of this rank's units; weights, velocity: theirs

    Raises ValueError for inconsistent settings, MemoryError if the model does not fit the device.
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
        ranks: Any = None,
    ):
        super().__init__("pvm", "give every thread a model of its own, as PVM.load does")
        if not isinstance(config, Config):
            raise ValueError(
                f"config: found {type(config).__name__}, expected a Config; PVM.from_config takes names and files"
            )
        check.whole("streams", streams, 1, MOST_STREAMS)
        check.whole("seed", seed, 0)
        if threads is not None:
            check.whole("threads", threads, 1)
        dtype = np.dtype(dtype)
        if wiring is None:
            refuse_too_large(config, 1 + config.moves, dtype.itemsize, ranks.size if ranks else 1)
        self.config, self.streams, self.seed, self.ranks, self.frozen = config, streams, seed, ranks, False
        self.wiring, self._own_wiring = wire(config) if wiring is None else wiring, wiring is not None
        layers = len(self.wiring.grids)
        if layers != len(config.grids):
            raise ValueError(f"wiring: found {layers} layers, expected {len(config.grids)} as config.grids has")
        self.backend, self.dtype, self.threads = backend.choose(device), dtype, threads or machine.available()
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype: found {dtype}, expected float32 or float64")
        if dtype == np.float64 and not self.backend.device.float64:
            raise ValueError(
                f"dtype: found float64 on {self.backend.name}, expected float32; float64 is computed on the CPU"
            )
        settings: dict[str, Any] = {"streams": streams, "threads": self.threads, "seed": seed, "dtype": self.dtype}
        try:
            pipeline: Pipeline = (ranks.pipeline if ranks else Pipeline)(config, self.wiring, self.backend, **settings)
        except MemoryError as error:
            found = f"pvm: found no memory left for the model ({error})"
            raise MemoryError(f"{found}, expected a smaller one; {REMEDY}") from error
        self.pipeline = pipeline
        self.layout, self.readouts = pipeline.layout, pipeline.readouts
        self.weights, self.velocity = pipeline.weights, pipeline.velocity
        self._rates = Rates(pipeline.layer, pipeline.layout, config)
        self._step_slot = pipeline.slot()
        self._layer = self.wiring.layer.astype(np.intp)  # avoids a conversion by bincount at every tick
        counts = np.diff(pipeline.whole.signal_at) * pipeline.whole.steps * streams
        self._predicted = np.bincount(self.wiring.layer, counts)  # predicted numbers of a layer in a tick

    @classmethod
    def from_config(cls, source: str | Path | Config, **settings: Any) -> "PVM":
        """Returns the model of a Config, of a named configuration ("quick", "small", ...) or of a file; see `presets.load`.

        settings  those of PVM
        """
        if isinstance(source, Config):
            return cls(source, **settings)
        if not isinstance(source, str | Path):
            raise ValueError(
                f"source: found {type(source).__name__}, expected a name, a path, or Config.from_fields(fields)"
            )
        config, notes = load(source)
        for note in notes:
            console.note(f"{source}: {note}")
        with named(source):
            return cls(config, **settings)

    # Ticks

    def step(self, frame: Any, label: Any = None) -> StepResult:
        """Reads a frame, learns from it, predicts the next.

        frame  (rows, columns, channels), or for B > 1 streams (B, rows, columns, channels); uint8, or floats in 0..1: an array,
               or anything that `np.asarray` converts, such as a Pillow image
        label  target of the readouts: a box (4,) x, y, width, height in pixels, of width 0 if the object is absent; or a list
               of heatmaps in 0..1, one for each of `readouts.shapes`. For B streams a list of B labels

        An interrupt (SIGINT) waits for the end of the step; a second one aborts it, and the model is inconsistent. Raises
        ValueError for another shape, numbers outside of 0..1 or an inconsistent model, FloatingPointError if the model
        diverges, which leaves it inconsistent, and RuntimeError while another thread's step is in flight.
        """
        self._check_whole()
        with self._runs.ended(), Held():
            slot, arrays = self._step_slot, self._arrays(frame, label)
            try:
                slot.fill(self.tick, 0, self._frame_input(self.tick, arrays, complete=True), 0, self.streams)
                slot.take()
                for stage in self.pipeline.stages():
                    self.pipeline.inline.run(stage.work, slot)
                self._finish(slot)
                slot.release()
            except BaseException as failure:
                self._rates.forget()
                if slot.state != FREE:  # otherwise it could not be filled, and no state has changed
                    self.torn = self.torn or broken_off(self.tick, failure)
                raise
            return self._result_of(slot)

    def run(self, frames: Any, *, every: int = 1, ahead: int = 0) -> Iterator[StepResult]:
        """Steps through frames to their end, and yields results.

        frames  an iterable of frames, or of pairs (frame, label), as in `step`: an array, a list, a generator, a clip. Or a
                feed (hybrid/feeds/video/frames.py), read from the model's tick on
        every   results are complete if their tick is a multiple of this; the others hold only the error
        ahead   maximum ticks in flight on a GPU when the caller gets an incomplete result; results do not depend on it. `save`
                is rejected meanwhile; after a complete tick there are none. If the caller stops, the model finishes them

        Between two ticks the caller may save, freeze or stop; a freeze starts with the next frame copied into a slot. An
        interrupt or an error of the feed leaves the model between two ticks, and an iterator has yielded one frame that it has
        not read, on a GPU up to `ahead` + 2. Raises the errors of `step`, and those of the feed, with a note of the tick.
        """
        return self._follow(lambda: self._course(frames, every, ahead))

    def _course(self, frames: Any, every: int, ahead: int) -> Course:
        every, ahead = check.whole("every", every, 1), check.whole("ahead", ahead, 0, MOST_AHEAD)
        batches = self._batches(_items(frames, self.tick), every)
        queues, stages = self.pipeline.queues(), self.pipeline.stages()
        self.trace = Trace()
        self._rates.forget()
        begin = stages if ahead else [stage for stage in stages if stage.queue == "copy in"]
        in_flight = 0 if self.backend.device.threads else max(ahead, IN_FLIGHT)
        slots = [[self.pipeline.slot()] for _ in range(in_flight + 2)]
        schedule = Schedule(Plan(begin, stages[len(begin) :], []), slots, queues, self.trace)
        return Course(schedule, batches, hold=lambda slots: ahead > 0 and slots[0].complete)

    def _batches(self, frames: Iterator[Any], every: int) -> Iterator[tuple[int, FrameInput]]:
        for tick in itertools.count(self.tick):
            try:
                item = next(frames, END)
                if item is END:
                    return
                batch = self._frame_input(tick, self._item(item), complete=tick % every == 0)
            except BaseException as failure:
                failure.add_note(f"in the feed, at tick {tick}")
                raise
            yield tick, batch

    def _frame_input(self, tick: int, arrays: Arrays, complete: bool) -> FrameInput:
        return FrameInput(*arrays, complete, self._rates.at(tick, self.frozen))

    def _count(self, tick: Tick) -> None:
        self._finish(self._slot_of(tick))

    def _result(self, tick: Tick) -> StepResult:
        return self._result_of(self._slot_of(tick))

    def _slot_of(self, tick: Tick) -> FrameSlot:
        assert self._schedule
        return next(slot for (slot,) in self._schedule.slots if slot.tick == tick.number)

    def _finish(self, slot: FrameSlot) -> None:
        """Completes a tick; raises if the model has diverged."""
        finite = np.isfinite(slot.miss)
        if not finite.all():
            unit, wiring = int(finite.argmin()), self.wiring
            self.torn = (
                f"tick {slot.tick}: the error of unit {unit} (layer {wiring.layer[unit]}, row {wiring.row[unit]}, column "
                f"{wiring.column[unit]}) is {slot.miss[unit]}; lower the rates"
            )
            raise FloatingPointError(self.torn)
        self.tick = slot.tick + 1

    def _result_of(self, slot: FrameSlot) -> StepResult:
        """Returns the result of a tick; its arrays are copies."""
        error = np.bincount(self._layer, slot.miss) / self._predicted
        if not slot.complete:
            return StepResult(slot.tick, error, None, [], [], self.streams)
        prediction = self.pipeline.prediction.shown(slot.predicted, self.threads)
        hidden = by_layer(copied(slot.hidden, self.threads), self.wiring)
        heatmaps = self.readouts.shares(slot.heat) if self.readouts else []
        if self.streams == 1:
            prediction, hidden, heatmaps = prediction[0], [part[0] for part in hidden], [heat[0] for heat in heatmaps]
        return StepResult(slot.tick, error, prediction, hidden, heatmaps, self.streams)

    def _leave(self) -> None:
        """Finishes and counts the ticks in flight, unless a tick failed."""
        assert self._schedule
        try:
            if not self.torn:
                self.settle()
                self.tick += self.under_way
            for queue in self._schedule.queues.values():
                queue.close()
        finally:
            self._rates.forget()

    @property
    def under_way(self) -> int:
        """The number of ticks in flight after the one that the caller has."""
        schedule = self._schedule
        return len(schedule.begun) if schedule and not schedule.plan.finish else 0

    # Frames and labels from users: validated, and converted to arrays that a slot copies

    def _item(self, item: Any) -> Arrays:
        """Converts an item of the argument of `run`: a `FrameBatch`, a pair (frame, label), or a frame."""
        if hasattr(item, "labelled"):
            label = item.box if item.labelled.all() else None
            return self._arrays(item.image, label if label is None or self.streams > 1 else label[0])
        return self._arrays(*item) if isinstance(item, tuple) and len(item) == 2 else self._arrays(item, None)

    def _arrays(self, frame: Any, label: Any) -> Arrays:
        image = self._image(frame)
        if label is None or not self.readouts:
            return image, None
        labels = [label] if self.streams == 1 else label
        if len(labels) != self.streams:
            raise ValueError(f"label: found {len(labels)} labels, expected {self.streams}, one for each stream")
        return image, np.stack([self.readouts.target(self._heats(one)) for one in labels])

    def _image(self, frame: Any) -> np.ndarray:
        """Returns the image, (B, rows, columns, channels)."""
        check.unmasked("frame", frame)
        try:
            image = np.asarray(frame)
        except (ValueError, TypeError) as failure:
            raise ValueError(f"frame: found {type(frame).__name__} that is no array ({failure})") from None
        image = image[None] if image.ndim == 3 and self.streams == 1 else image
        expected = (self.streams, *self.wiring.frame)
        if image.shape != expected:
            shown, (rows, columns, _) = expected[1:] if self.streams == 1 else expected, self.wiring.frame
            raise ValueError(
                f"frame: found shape {image.shape}, expected {shown}: {'' if self.streams == 1 else 'streams, '}rows, "
                f"columns, channels; PIL.Image.fromarray(frame).resize(({columns}, {rows})) or frame[..., None] may help"
            )
        if image.dtype != np.uint8 and not (image.dtype.kind in "fb" and image.min() >= 0 and image.max() <= 1):
            numbers = f"numbers from {image.min()} to {image.max()}" if image.dtype.kind in "fiu" else "no numbers"
            raise ValueError(
                f"frame: found {numbers} ({image.dtype}), expected uint8, or floats from 0 to 1; "
                "frame.astype(np.uint8) for numbers to 255"
            )
        return image

    def _heats(self, label: Any) -> list[np.ndarray]:
        assert self.readouts is not None
        if isinstance(label, list) and any(np.ndim(part) for part in label):
            shapes = [np.shape(heat) for heat in label]
            if shapes != self.readouts.shapes:
                raise ValueError(f"label: found heatmaps {shapes}, expected {self.readouts.shapes}")
            for heat in label:
                values = np.asarray(check.unmasked("label", heat))
                if not (values.min() >= -1e-3 and values.max() <= 1.001):  # the originals' round to above 1
                    raise ValueError(
                        f"label: found numbers from {values.min()} to {values.max()}, expected heatmaps in 0..1"
                    )
            return label
        box = check.array("label", np.asarray(check.unmasked("label", label), np.float32), (4,), np.float32)
        check.finite("label", box)
        if box[2:].min() < 0:
            raise ValueError(f"label: found the box {box.tolist()}, expected a width and height of at least 0")
        return [heads.heat_target(box, *shape, self.wiring.frame) for shape in self.readouts.shapes]

    # Rates

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """The rate and momentum of each layer, (L,), in force at the next tick."""
        return self.config.rates(self.tick)

    # Learned parameters

    def prediction(self) -> np.ndarray:
        """Returns `StepResult.prediction` of the last tick, (B, rows, columns, channels); also for a loaded model."""
        self.settle()
        prediction = self.pipeline.prediction
        return prediction.shown(self.pipeline.predicted(self.tick - 1, prediction.index))

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """Returns copies of a unit's matrices (outputs, inputs), biases (outputs,), velocities by name; see `fields.matrices`.

        unit  its global number, as in error messages and `wiring`

        Raises ValueError if ranks partition the units.
        """
        check.whole("unit", unit, 0, len(self.wiring.hidden) - 1)
        self._settle_whole("weights_of")
        layout, flat = taken(self.layout, np.array([unit])), self.pipeline.weights_of(unit)
        own = fields.matrices(layout, self.config, flat["weights"])
        if "velocity" not in flat:
            return own
        velocity = fields.matrices(layout, self.config, flat["velocity"])
        return own | {f"{name} velocity": array for name, array in velocity.items()}

    def receptive_field(self, layer: int, unit: int) -> fields.Field:
        """Returns the receptive fields of a unit's hidden activations in the frame, see `fields.Projection`.

        unit  its number within the layer, as in `StepResult.hidden[layer]`
        """
        return self.projection().field(fields.unit_of(self.wiring, layer, unit))

    def projection(self) -> fields.Projection:
        """Returns the back-projection of `receptive_field`, for many units of the current model.

        Raises ValueError if ranks partition the units.
        """
        self._settle_whole("projection")
        arrays = {name: array for name, array in self.arrays().items() if name in ("weights", "low", "high")}
        arrays["tape"] = self.pipeline.tape(self.tick - 1)
        host = {name: self.backend.device.to_host(array) for name, array in arrays.items()}
        return fields.Projection(self.wiring, self.layout, self.config, host)

    def _settle_whole(self, what: str) -> None:
        """Settles a model whose units are all in this process."""
        if self.ranks and self.ranks.size > 1:
            raise ValueError(
                f"{what}: found units that {self.ranks.size} ranks share, expected all in one process; save the "
                "model, and load it in a process without ranks"
            )
        self.settle()

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of parameters of the units, and of the readouts."""
        units = int(weights_at(self.pipeline.whole)[-1])
        return units, self.readouts.weights.size if self.readouts else 0

    # Checkpoints

    def arrays(self) -> dict[str, Any]:
        """Returns weights, velocity and state by name, in the memory of the device; `fetch` reads them."""
        return self.pipeline.arrays()

    def fetch(self) -> dict[str, np.ndarray]:
        """Returns the same as NumPy arrays; live ones on the CPU."""
        return self.pipeline.fetch()

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Writes arrays, named as in `arrays`, to the device."""
        self.pipeline.put(arrays)

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Writes a checkpoint, from which `load` resumes with the same numbers, on this device or another.

        facts  of the caller, which `load` returns; JSON-compatible

        Raises ValueError for an inconsistent model, and for numbers that are not finite, which may not show in an error before
        a later tick; the previous checkpoint then stays. See hybrid/storage/checkpoint.py for other errors. All ranks call it,
        rank 0 writes the same bytes as one process would, and an error of one rank is raised by all.
        """
        self._check_whole()
        if self.under_way:
            raise ValueError(
                f"save: {self.under_way} ticks are under way; of a run with `ahead`, save after a complete tick"
            )
        self.settle()
        own = {
            "config": json.loads(self.config.to_json()),
            "wiring": describe(self.wiring) if self._own_wiring else None,
            "streams": self.streams,
            "seed": self.seed,
            "dtype": self.dtype.name,
            "step": self.tick,
            "frozen": self.frozen,
        }
        self.pipeline.save(folder, {"pvm": own, "facts": facts or {}}, self.tick)

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str | None = None, threads: int | None = None, ranks: Any = None
    ) -> tuple["PVM", dict[str, Any]]:
        """Returns the model of a checkpoint, or of a run's latest, and the facts saved with it.

        device, threads, ranks  as in PVM, independent of those that saved it

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another kind.
        """
        saved, numbers = checkpoint.read_facts(folder), checkpoint.numbers(folder)
        if "pvm" not in saved:
            raise ValueError(f"{folder}: found a checkpoint of another kind, expected one of a Predictive Vision Model")
        with checkpoint.rebuilding(folder):
            own, facts = saved["pvm"], saved["facts"]
            config = Config.from_fields(own["config"])
            refuse_more(folder, config, numbers)
            tick = check.whole("step", own["step"], 0)
            graph = custom(**own["wiring"]) if own["wiring"] else None
            settings = {name: own[name] for name in ("streams", "seed", "dtype")}
            model = cls(config, wiring=graph, device=device, threads=threads, ranks=ranks, **settings)
            model.pipeline.restore(folder)
            model.tick, model.frozen = tick, own["frozen"]
        return model, facts


def _items(frames: Any, first: int) -> Iterator[Any]:
    """Yields the items from tick `first` on: those of a feed's ticks, or all of any other iterable."""
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


def by_layer(published: np.ndarray, wiring: Wiring) -> list[np.ndarray]:
    """Returns published values, (B, H), by layer: (B, units, hidden), or (B, 1, all) if units of a layer differ."""
    ends = np.searchsorted(wiring.layer, np.arange(1, len(wiring.grids)))
    parts = np.split(published, np.append(0, np.cumsum(wiring.hidden))[ends], axis=1)
    sizes = [set(part.tolist()) for part in np.split(wiring.hidden, ends)]
    return [
        part.reshape(len(published), -1, size.pop() if len(size) == 1 else part.shape[1])
        for part, size in zip(parts, sizes, strict=True)
    ]


# Sizes


def parameters(config: Config, wiring: Wiring) -> tuple[int, int]:
    """Returns the numbers of weights and biases of the units, and of their readouts."""
    readouts = heads.layout_of(wiring, config)[0].w_at[-1] if config.readout else 0
    return int(weights_at(tape_layout(wiring, config))[-1]), int(readouts)


def refuse_too_large(config: Config, copies: int, itemsize: int, ranks: int = 1) -> None:
    """Raises MemoryError if the parameters cannot fit in this machine's memory, before anything is allocated.

    copies  of each parameter: 2 with momentum
    ranks   that partition them; each may have a machine to itself
    """
    least = min(itemsize * copies * fewest(config) // ranks, sys.maxsize)
    memory = machine.memory()
    if least > memory:
        raise MemoryError(
            f"pvm: found at least {least / 2**30:,.0f} GiB of parameters, expected less than the {memory / 2**30:,.0f} GiB of"
            f" this machine; {REMEDY}"
        )


def refuse_more(source: object, config: Config, held: int) -> None:
    """Raises ValueError if a configuration needs more numbers than were saved with it, before anything is allocated."""
    published = sum(prod(grid) * size for grid, size in zip(config.grids, config.hidden, strict=True))
    if published + prod(config.frame) > held:
        raise ValueError(f"{source}: declares {published} hidden activations, but holds {held} numbers; it was altered")


def fewest(config: Config) -> int:
    """Returns a lower bound of the units' parameters without wiring: one signal source per unit, near neighbours and tops."""
    before, total, last = prod(config.block) * config.channels, 0, len(config.grids) - 1
    tops = prod(config.grids[-1]) if config.top_to_all and config.wiring == "cuda" else 0
    square = int(config.lateral_radius / 2**0.5)  # within the circle
    for layer, (grid, h) in enumerate(zip(config.grids, config.hidden, strict=True)):
        units = prod(grid)
        total += units * (h * (len(config.features) * before + 1) + config.predict_steps * before * (h + 1))
        if config.unit in ("simple", "change", "complex"):
            beside = prod(_pairs(size, square) for size in grid) - (0 if config.self_context else units)
            total += ((beside if layer < last or not tops else 0) * h + units * tops * config.hidden[-1]) * h
        before = h
    return total


def _pairs(size: int, radius: int) -> int:
    """Returns the pairs of places in a row that are no farther from each other than a radius; a place is its own pair too."""
    reach = min(radius, size - 1)
    return size + reach * (2 * size - reach - 1)
