"""The pipeline of a frame through a model: its arrays on the device, and the stages that update them."""

import functools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import backend, check, contract
from ..schedule.schedule import Stage
from ..storage import checkpoint
from .config import Config
from .heads import Heads
from .layout import TapeLayout, runs, taken, tape_layout, weights_at
from .slot import FrameSlot, SlotSizes
from .wiring import Wiring

TOGETHER = 1 << 19  # bytes of frames that transfer to a GPU in some 10 us; larger transfers overlap with computation
PORTION = 1 << 16  # numbers: several passes over them hit a core's cache
CHANGE, REST = np.float32(10), np.float32(0.1)  # scale factors of first-layer weights: of derivatives, and of all else
Note = Callable[[float, float], object]


class Pipeline:
    """A model's arrays on its device, and the stages of a frame; its only host memory are the slots.

    config             all but its schedule, which the slots hold
    activation         of the units
    weights, velocity  of the units; velocity None if no schedule has momentum
    state              all other arrays that change from tick to tick, by name; see `initial_state`
    readouts           `Heads`, or None
    units, layer       (u,) the units of these arrays, all unless ranks partition them, and the layer of each
    layout             their layout on the tapes
    whole              the layout of all units
    prediction         the positions of the predicted frame
    delta              (B, T) of the last tick, see `contract.State`
    inline             the queue that does everything in turn
    """

    def __init__(
        self,
        config: Config,
        wiring: Wiring,
        device: backend.Backend,
        *,
        streams: int,
        threads: int,
        seed: int,
        dtype: np.dtype,
        part: tuple[TapeLayout, np.ndarray] | None = None,
    ):
        """Creates the arrays of all units, or of a part: the layout of all, and the numbers (u,) of its units."""
        self.config, self.wiring, self.streams, self.dtype, self.backend = config, wiring, streams, dtype, device
        self.activation = config.activation
        self.whole, units = part or (tape_layout(wiring, config), None)
        self.units = np.arange(len(wiring.hidden)) if units is None else units
        self.layout = self.whole if units is None else taken(self.whole, units)
        self.layer = wiring.layer[self.units]
        self.prediction = Prediction(wiring, self.layout, config, units)
        self.readouts = Heads(wiring, self._read_layout(), config, streams, seed, dtype) if config.readout else None
        self.frame_size = int(np.prod(wiring.frame))
        self.threads, self.inline = threads, device.device.inline("pvm", threads)
        drawn_at = weights_at(self.whole)[self.units]
        self.inline.run(self._place, initial_weights(self.layout, config, seed, dtype, drawn_at))

    def _read_layout(self) -> TapeLayout:
        """Returns the layout of hidden vectors in the input of the readouts."""
        return self.layout

    def _place(self, weights: np.ndarray) -> None:
        """Copies everything to the device; within the work of a queue."""
        device, kernels, units = self.backend.device, self.backend.pvm, len(self.units)
        first = initial_state(self.layout, self.config, self.layer, weights, self.streams)
        self.plan = kernels.plan(self.layout)
        self.weights = device.from_host(weights)
        self.velocity = device.from_host(np.zeros_like(weights)) if self.config.moves else None
        self.state = {name: device.from_host(array) for name, array in first.items()}
        self.delta = device.empty(first["tape_0"].shape, self.dtype)
        self._rates = device.from_host(np.zeros((2, units), self.dtype))
        self._flags = device.from_host(np.zeros((2, units), np.uint8))
        self._speed, self._chosen = _rows(self._rates), _rows(self._flags)
        self._predicted_at = [device.from_host(index) for index in self.prediction.index]
        if self.readouts:
            self.readouts.place(device, self.backend.units, kernels.collect)

    def stages(self) -> list[Stage]:
        """Returns the stages of a frame. Device state changes only on "dense", so the overlap of queues affects no result."""
        read = [Stage("readout", "dense", self._read, ("frame in",))] if self.readouts else []
        way = [Stage("frame in", "copy in", self._send), Stage("tick", "dense", self.tick, ("frame in",)), *read]
        if self.backend.device.host_memory:
            return way
        way.append(Stage("home", "copy out", self._home, (way[-1].name,)))
        if self.streams * self.frame_size <= TOGETHER:
            way = [Stage("frame", "dense", functools.partial(_all, way))]
        return [self._repeated(stage) if stage.queue == "dense" else stage for stage in way]

    def _repeated(self, stage: Stage) -> Stage:
        return stage._replace(work=functools.partial(self._again, stage))

    def _again(self, stage: Stage, slot: FrameSlot) -> None:
        """Runs a stage; its recording is replayed with the same arrays once all alternating arrays have had their turn."""
        period = math.lcm(2, self.layout.steps + 1)
        chosen = slot.complete, slot.supervised, slot.fresh, slot.readout_rate
        key = stage.name, slot.tick % period, slot.frame.dtype, *chosen, *self.config.factors(slot.tick)
        slot.recorder.run(key, stage.work, slot)

    def slot(self) -> FrameSlot:
        """Returns the buffers of a frame in flight."""
        return FrameSlot(self._sizes(), self.backend.device, self.dtype)

    def _sizes(self) -> SlotSizes:
        heat, hidden = self.readouts.order.size if self.readouts else 0, int(self.whole.hidden.sum())
        units, parts = len(self.wiring.hidden), len(self.prediction.index)
        return SlotSizes(self.streams, self.frame_size, units, heat, hidden, parts)

    def queues(self) -> dict[str, Any]:
        """Returns the queues. A CPU runs everything in turn on all its threads; with a GPU, the caller's thread reads the feed,
        since waiting for another thread would take as long as a tick of a small model.
        """
        if self.backend.device.threads:
            return dict.fromkeys(("copy in", "dense", "feed"), self.inline)
        queues = {name: self.backend.device.queue(name, 0) for name in ("copy in", "dense", "copy out")}
        return queues | {"feed": Inline("feed", self.threads)}

    # Stages

    def _send(self, slot: FrameSlot) -> None:
        copy = self.backend.device.copy
        copy(slot.frame_dev, slot.frame)
        if slot.supervised:
            copy(slot.target_dev, slot.target)

    def tape(self, step: int) -> Any:
        """Returns the tape (B, T) of a tick; those of the last `steps` ticks and this one are valid."""
        return self.state[f"tape_{step % (self.layout.steps + 1)}"]

    def tick(self, slot: FrameSlot) -> None:
        """Shows the frame to the units, which learn and predict, and collects the data to copy back."""
        self._show(slot)
        self._move(slot, 0, len(self.units))
        if slot.complete:
            self._look(slot)
            if self.backend.device.host_memory:
                self._publish(slot)

    def _show(self, slot: FrameSlot) -> None:
        if slot.fresh:
            self.backend.device.copy(self._rates, slot.rates)
            self.backend.device.copy(self._flags, slot.flags)
        scale = 1 / 255 if slot.frame.dtype == np.uint8 else 1.0
        self.backend.pvm.show(self.state[f"world_{slot.tick % 2}"], slot.frame_dev, scale)

    def _move(self, slot: FrameSlot, first: int, last: int) -> None:
        """Updates the units first:last: they learn, predict and publish."""
        t, state, config = slot.tick, self.state, self.config
        written = state[f"world_{(t + 1) % 2}"], self.tape(t), state[f"signals_{t % 2}"], state["integral"]
        scaled = state.get("low"), state.get("high")
        now = contract.State(*written, self.delta, *scaled, slot.miss_dev, self.weights, self.velocity)
        learned_from = self.tape(t - self.layout.steps), state[f"signals_{(t - 1) % 2}"]
        past = contract.Past(state[f"world_{t % 2}"], self.tape(t - 1), *learned_from)
        (rate, momentum), (learns, adapts) = self._speed, self._chosen
        learning = contract.Learning(rate, momentum, learns, adapts, config.wiring == "cuda")
        squeeze = (0.8, 0.1) if config.squeeze else (1.0, 0.0)
        gathering = contract.Gathering(*squeeze, config.tau, *config.factors(t))
        self.backend.pvm.tick(now, self.plan, past, learning, gathering, self.activation, first, last)

    def _read(self, slot: FrameSlot) -> None:
        """Runs the readouts on the units' hidden activations of this frame, or on those of the previous tick."""
        assert self.readouts
        tape = self._read_tape(slot)
        rate = slot.readout_rate if slot.supervised else 0.0
        y = self.readouts.step(tape, slot.target_dev, rate) if rate else self.readouts.forward(tape)
        if slot.complete:
            self.backend.device.copy(slot.heat_dev, y)

    def _read_tape(self, slot: FrameSlot) -> Any:
        return self.tape(slot.tick if self.config.wiring == "cuda" else slot.tick - 1)

    def _look(self, slot: FrameSlot) -> None:
        """Collects the data to copy back in arrays of the slot."""
        for part, index in zip(_rows(slot.predicted_dev), self._predicted_at, strict=True):
            self.backend.pvm.collect(part, self.tape(slot.tick), index)

    def _home(self, slot: FrameSlot) -> None:
        names = ("miss", "predicted", "heat")[: 3 if self.readouts else 2]
        for name in names if slot.complete else names[:1]:
            self.backend.device.copy(getattr(slot, name), getattr(slot, f"{name}_dev"))
        if slot.complete:
            self._publish(slot)

    def _publish(self, slot: FrameSlot) -> None:
        """Copies the published values back."""
        world = self.state[f"world_{(slot.tick + 1) % 2}"].reshape(-1)
        for stream in range(self.streams):
            last = (stream + 1) * (world.size // self.streams)
            self.backend.device.copy(slot.hidden[stream], world[last - slot.hidden.shape[1] : last])

    # Queries between two ticks

    def predicted(self, tick: int, places: list[np.ndarray]) -> np.ndarray:
        """Returns the units' predictions in a tick, (n, B, F), at n lists of positions on the tape; see `Prediction`."""
        tape = self.backend.device.to_host(self.tape(tick))
        return np.stack([tape[:, index] for index in places])

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """Returns the weights, and any velocities, of one unit of all, flat."""
        first, last = weights_at(self.layout)[unit : unit + 2]
        both, host = {"weights": self.weights, "velocity": self.velocity}, self.backend.device.to_host
        return {name: host(array[first:last]) for name, array in both.items() if array is not None}

    # Checkpoints

    def arrays(self) -> dict[str, Any]:
        """Returns weights, velocity and state by name, in the memory of the device; `fetch` reads them."""
        found = {"weights": self.weights, "velocity": self.velocity}
        if self.readouts:
            found |= {"readout.weights": self.readouts.weights, "readout.velocity": self.readouts.velocity}
        return {name: array for name, array in (found | self.state).items() if array is not None}

    def fetch(self) -> dict[str, np.ndarray]:
        """Returns the same as NumPy arrays; live ones on the CPU."""
        return {name: self.backend.device.to_host(array) for name, array in self.arrays().items()}

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Writes arrays, named as in `arrays`, to the device."""
        for name, array in self.arrays().items():
            if name in arrays:
                self.backend.device.write(array, arrays[name])

    def save(self, folder: str | Path, facts: dict[str, Any], tick: int) -> None:
        """Writes a checkpoint of the model before a tick; ValueError for numbers that are not finite."""
        checkpoint.save(folder, self._finite(tick), facts)

    def _finite(self, tick: int) -> dict[str, np.ndarray]:
        arrays = self.fetch()
        for name, array in arrays.items():
            check.finite(f"pvm, before tick {tick}: {name}", array)
        return arrays

    def restore(self, folder: str | Path) -> None:
        """Loads the arrays of a checkpoint of the same model."""
        arrays = self.fetch()
        checkpoint.load_into(folder, arrays)
        self.put(arrays)


def _all(stages: list[Stage], slot: FrameSlot) -> None:
    for stage in stages:
        stage.work(slot)


def _rows(array: Any) -> list[Any]:
    return [array[k : k + 1].reshape(*array.shape[1:]) for k in range(len(array))]


class Prediction:
    """The predicted frame, gathered from the units that predict patches; of overlapping patches, the last unit wins.

    layout  of all units, or of some
    units   (u,) their numbers; None: all

    unit   (F,) the predicting unit of each number of the frame; -1: none
    place  (P,) the numbers of the frame that units of the layout predict; all F of them if it has all units
    index  tape positions of these numbers in the next frame, (P,) int32: of the prediction, and of the correction that residual
           units add; 0 for numbers without prediction
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config, units: np.ndarray | None = None):
        self.shape, self.squeeze = wiring.frame, config.squeeze
        unit, within = np.full(wiring.frame, -1), np.zeros(wiring.frame, np.int64)  # index in the unit's patch
        for u, patch in enumerate(wiring.patch):
            if patch is not None:
                row, column, rows, columns = patch
                part = slice(row, row + rows), slice(column, column + columns)
                unit[part], within[part] = u, np.arange(unit[part].size).reshape(unit[part].shape)
        self.unit, self._within = unit.ravel(), within.ravel()
        self.covered = self.unit >= 0
        self._missing = None if self.covered.all() else ~self.covered
        self.place = np.arange(self.unit.size) if units is None else np.flatnonzero(np.isin(self.unit, units))
        inside = np.zeros(len(wiring.hidden), np.int64)  # number of a unit within the layout
        inside[np.arange(len(wiring.hidden)) if units is None else units] = np.arange(len(layout.hidden))
        self._number = inside[self.unit[self.place]]
        self.index = self._index(layout, layout.steps - 1 if layout.newest_first else 0)

    def _index(self, layout: TapeLayout, step: int) -> list[np.ndarray]:
        predictions = [layout.predicted_at] + [layout.residual_at] * bool((layout.residual_at >= 0).any())
        before = step * np.diff(layout.signal_at)[self._number] + self._within[self.place]
        covered = self.covered[self.place]
        return [np.where(covered, at[self._number] + before, 0).astype(np.int32) for at in predictions]

    def shown(self, parts: np.ndarray, threads: int = 1) -> np.ndarray:
        """Returns the predicted frames, (B, rows, columns, channels) in 0..1, and 0 where no unit predicts.

        parts    (n, B, F), gathered from the tape at `index`
        threads  CPU threads, used for large frames
        """
        frames = np.empty(parts.shape[1:], parts.dtype)

        def fill(these: slice) -> None:  # in portions, so that only one array of this size is allocated
            for stream, frame in enumerate(frames):
                out, own = frame[these], parts[:, stream, these]
                np.copyto(out, own[0] if len(own) == 1 else own[0] + 2 * own[1] - 1)
                if self.squeeze:
                    np.divide(np.subtract(out, 0.1, out=out), 0.8, out=out)
                np.clip(out, 0, 1, out=out)
                if self._missing is not None:
                    out[self._missing[these]] = 0

        in_portions(fill, self.covered.size, threads)
        return frames.reshape(-1, *self.shape)


# Large arrays of a result in portions on several threads, since NumPy releases the interpreter lock.
#
# No tick is in flight while a complete result is made, so a GPU waits: for flat210m as long as three ticks.


def in_portions(work: Callable[[slice], object], size: int, threads: int) -> None:
    """Calls `work` for slices that cover `size` numbers, on up to `threads` threads; a single slice needs no other thread."""
    slices = [slice(first, min(first + PORTION, size)) for first in range(0, size, PORTION)]
    if threads == 1 or len(slices) < 2:
        for one in slices:
            work(one)
    else:
        for _ in _helpers(threads).map(work, slices):  # raises the errors of the threads
            pass


def copied(array: np.ndarray, threads: int) -> np.ndarray:
    """Returns a copy of a contiguous array."""
    made, flat = np.empty_like(array).reshape(-1), array.reshape(-1)

    def copy(these: slice) -> None:
        made[these] = flat[these]

    in_portions(copy, flat.size, threads)
    return made.reshape(array.shape)


@functools.cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Returns the thread pool, which ends with the process; only models with large frames need it."""
    return ThreadPoolExecutor(threads, "pvm result")


os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has no threads of its parent


# The queue of a feed with a GPU: it runs work immediately, in the caller's thread, and needs no Numba unless the feed does.


class Inline:
    """A queue like `inline` of the CPU's device (cpu/device.py), whose package imports Numba.

    threads  thread count for a feed's parallel kernels, if it has imported Numba
    """

    apart = False

    def __init__(self, name: str, threads: int):
        self.name, self._threads = name, threads

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> SimpleNamespace:
        """Calls `work(*arguments)` immediately."""
        for event in after:
            event.wait()
        if numba := sys.modules.get("numba"):
            numba.set_num_threads(self._threads)
        result = _timed(note, work, arguments)
        return SimpleNamespace(wait=lambda: result)

    def close(self) -> None:
        """Does nothing."""


def _timed(note: Note | None, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    start = time.perf_counter()
    result = work(*arguments)
    if note:
        note(start, time.perf_counter())
    return result


# Initial values: weights drawn from a seed, and the state before the first frame.


def initial_weights(
    layout: TapeLayout, config: Config, seed: int, dtype: Any, drawn_at: np.ndarray | None = None
) -> np.ndarray:
    """Returns the weights and biases of all dense layers, flat, (weights,) of `dtype`; by the rule of `config.init`.

    drawn_at  (U,) offsets of each unit in the random numbers of a whole model; None: consecutive. Numbers of other units are
              skipped, not generated
    """
    sizes = layout.rows.astype(np.int64) * (layout.columns + 1)
    at = weights_at(layout)
    drawn = np.empty(at[-1], np.float32)
    _draw(drawn, seed, at, at[:-1] if drawn_at is None else drawn_at)
    drawn -= np.float32(0.5)
    if config.init == "cuda":
        drawn *= np.float32(0.03)
    else:
        drawn *= np.repeat(np.float32(2) / np.sqrt(np.maximum(layout.columns, 1).astype(np.float32)), sizes)
    if config.unit == "change":
        _start_from_repeating(drawn, layout, config)
    return drawn.astype(dtype, copy=False)


def _start_from_repeating(drawn: np.ndarray, layout: TapeLayout, config: Config) -> None:
    """Turns drawn weights into those of units that predict no change: the last matrix and its bias are 0.

    A change is best predicted from derivatives. They are small, so their first weights are larger than those of the signal and
    the context, which would let a unit memorise the clip. Biases subtract the derivatives' midpoint, 1/2.
    """
    at, last = weights_at(layout), layout.layer_at[1:] - 1
    rows, columns = layout.rows.astype(np.int64), layout.columns.astype(np.int64)
    drawn[runs(layout.w_at[last], (rows * (columns + 1))[last])] = 0
    if config.activation == "tanh":  # its 0 is not the middle of 0..1
        drawn[runs((layout.w_at + rows * columns)[last], rows[last])] = np.arctanh(0.5)
    if "derivative" not in config.features:
        return
    for u, first in enumerate(layout.layer_at[:-1]):
        signals = int(layout.signal_at[u + 1] - layout.signal_at[u])
        bias = at[u] + rows[first] * columns[first]
        matrix = drawn[at[u] : bias].reshape(rows[first], columns[first])
        changes = matrix[:, signals : 2 * signals]
        matrix *= REST
        changes *= CHANGE / REST
        drawn[bias : bias + rows[first]] -= changes.sum(axis=1) / 2


def _draw(drawn: np.ndarray, seed: int, at: np.ndarray, drawn_at: np.ndarray) -> None:
    """Writes drawn[at[u] : at[u + 1]] of each unit from position drawn_at[u] of the random sequence of this seed.

    A draw of the generator makes two float32, so an odd position needs one discarded number.
    """
    breaks = np.flatnonzero(np.diff(drawn_at) != np.diff(at[:-1])) + 1  # units that do not follow the previous one
    for first, last in zip([0, *breaks], [*breaks, len(drawn_at)], strict=True):
        bits, begin = np.random.PCG64([seed, 0]), int(drawn_at[first])
        bits.advance(begin // 2)
        rng = np.random.Generator(bits)  # at its start, `default_rng`
        rng.random(begin % 2, np.float32)
        rng.random(dtype=np.float32, out=drawn[at[first] : at[last]])


def initial_state(
    layout: TapeLayout, config: Config, layer: np.ndarray, weights: np.ndarray, streams: int
) -> dict[str, np.ndarray]:
    """Returns all arrays but the weights that change from tick to tick, in their state before tick 0. B streams.

    Tick t writes the array with number t modulo their count, so the last one is that of the tick before the first.

    layer   (U,) of each unit

    world_0, world_1   (B, W): tick t reads number t, writes the published values to the next
    tape_0 ... tape_k  (B, T), of the last `steps` ticks and this one
    signals_0, _1      (B, S)
    integral           (B, S), or (B, 0) if it is no feature
    low, high          (B, W), with `config.publish` "minmax"

    The first predictions are those for zero inputs.
    """
    dtype = weights.dtype
    sizes = {"world": layout.world, "tape": int(layout.tape_at[-1]), "signals": int(layout.signal_at[-1])}
    counts = {"world": 2, "tape": layout.steps + 1, "signals": 2}
    arrays = {f"{name}_{k}": np.zeros((streams, sizes[name]), dtype) for name in sizes for k in range(counts[name])}
    arrays["integral"] = np.zeros((streams, sizes["signals"] if "integral" in config.features else 0), dtype)
    if config.publish == "minmax":
        arrays |= {"low": np.zeros((streams, sizes["world"]), dtype), "high": np.ones((streams, sizes["world"]), dtype)}
    _predict(arrays, layout, config, weights)
    if config.publish == "minmax":
        learning = np.repeat(config.rates(0)[0][layer] != 0, layout.hidden)
        _stretch(arrays, runs(layout.published_at, layout.hidden), learning)
    return arrays


def _predict(arrays: dict[str, np.ndarray], layout: TapeLayout, config: Config, weights: np.ndarray) -> None:
    """Computes the predicted and published values for zero inputs, on the tape of the tick before the first."""
    tape, world = arrays[f"tape_{layout.steps}"], arrays["world_0"]
    for k in range(len(layout.rows)):
        rows, columns, at = layout.rows[k], layout.columns[k], layout.w_at[k]
        matrix, bias = weights[at : at + rows * columns].reshape(rows, columns), at + rows * columns
        x = tape[:, layout.in_at[k] : layout.in_at[k] + columns]
        sums = x @ matrix.T + weights[bias : bias + rows]
        tape[:, layout.out_at[k] : layout.out_at[k] + rows] = _activate(sums, config)
    world[:, runs(layout.published_at, layout.hidden)] = tape[:, runs(layout.hidden_at, layout.hidden)]


def _stretch(arrays: dict[str, np.ndarray], places: np.ndarray, learning: np.ndarray) -> None:
    """Rescales the published values at these positions, as `_publish` of cpu/pvm.py."""
    published, low, high = (arrays[name][:, places] for name in ("world_0", "low", "high"))
    least = published.dtype.type(1e-6)
    low[:, learning] = np.minimum(published, low)[:, learning] + least
    high[:, learning] = np.maximum(published, high)[:, learning] - least
    for name, values in (("world_0", (published - low) / (high - low)), ("low", low), ("high", high)):
        arrays[name][:, places] = values


def _activate(s: np.ndarray, config: Config) -> Any:
    if config.activation == "logistic":
        return 1 / (1 + np.exp(-s))
    return np.tanh(s) if config.activation == "tanh" else s / (2 * (abs(s) + 1)) + s.dtype.type(0.5)
