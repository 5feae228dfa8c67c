"""The way of a frame through a model: its arrays where they are computed, and the stages that move them."""

from typing import Any

import numpy as np

from .. import backend, contract
from ..engine.schedule import Stage
from . import initial, resumed
from .config import Config
from .heads import Heads
from .layout import tape_layout
from .prediction import Prediction
from .slot import NOBODY, FrameInput, FrameSlot
from .wiring import Wiring

TOGETHER = 1 << 22  # bytes of frames that cross sooner than a stage more is handed to a GPU, about 0.1 ms


class Pipeline:
    """A model's arrays on its device, and the stages that a frame goes through; what it has of the host are the slots.

    weights, velocity  of the units; velocity None where no schedule asks for momentum
    state              all else that changes from tick to tick, by name; see `initial.state`
    readouts           `Heads`, or None
    layout, picture    where everything is on the tapes
    frozen             while True nothing learns
    threads            of the CPU
    """

    def __init__(self, config: Config, wiring: Wiring, found, streams: int, threads: int, seed: int, dtype: np.dtype):
        self.config, self.wiring, self.streams, self.dtype, self.frozen = config, wiring, streams, dtype, False
        self.backend = found
        self.layout = tape_layout(wiring, config)
        self.picture = Prediction(wiring, self.layout, config)
        self.readouts: Any = config.readout and Heads(wiring, self.layout, config, streams, seed, dtype)
        self._in_force: Any = None  # what the rates and flags on the device, or on their way there, were made of
        self.threads, self.inline = threads, found.device.inline("pvm", threads)
        self.inline.run(self._place, initial.weights(self.layout, config, seed, dtype))

    def forget_rates(self) -> None:
        """Frames that were filled in and not shown have not set their rates: the next one does."""
        self._in_force = None

    def _place(self, weights: np.ndarray) -> None:
        """Put everything where it is computed; within the work of a queue."""
        device, kernels, units = self.backend.device, self.backend.pvm, len(self.wiring.hidden)
        frame = int(np.prod(self.wiring.frame))
        first = initial.state(self.layout, self.config, self.wiring.layer, weights, frame, self.streams)
        self._plan, self.frame_size = kernels.plan(self.layout), frame
        self.weights = device.from_host(weights)
        self.velocity = device.from_host(np.zeros_like(weights)) if self.config.moves else None
        self.state = {name: device.from_host(array) for name, array in first.items()}
        self._delta = device.empty(first["tape_0"].shape, self.dtype)
        self._rates = device.from_host(np.zeros((2, units), self.dtype))
        self._flags = device.from_host(np.zeros((3, units), np.uint8))
        self._speed, self._chosen = _rows(self._rates), _rows(self._flags)
        self._picture_at = [device.from_host(index) for index in self.picture.index]
        rests = resumed.kept(self.layout, self.config)
        self._lessons = resumed.Resumed(device, self.layout, self.state, units) if rests else None
        if self.readouts:
            self.readouts.place(device, self.backend.units, kernels.collect)

    def stages(self) -> list[Stage]:
        """The way of a frame. All that changes on the device moves on "dense", so nothing depends on how queues overlap."""
        read = [Stage("readout", "dense", self._read, ("frame in",))] if self.readouts else []
        way = [Stage("frame in", "copy in", self._send), Stage("tick", "dense", self.tick, ("frame in",)), *read]
        if self.backend.device.host_memory:
            return way
        way.append(Stage("home", "copy out", self._home, (way[-1].name,)))
        together = self.streams * self.frame_size <= TOGETHER
        return [Stage("frame", "dense", lambda slot: _all(way, slot))] if together else way

    def slot(self) -> FrameSlot:
        """Room for a frame under way."""
        units, heat = len(self.wiring.hidden), self.readouts.order.size if self.readouts else 0
        sizes = (self.streams, self.frame_size, units, heat, int(self.layout.hidden.sum()), len(self.picture.index))
        return FrameSlot(*sizes, self.backend.device, self.dtype, self._put_in)

    def queues(self) -> dict[str, Any]:
        """A CPU does everything in turn on all its threads. Beside a GPU the caller's thread reads the feed, while the device
        works: to wait for another thread would take as long as a tick of a small model.
        """
        if self.backend.device.threads:
            return dict.fromkeys(("copy in", "dense", "feed"), self.inline)
        queues = {name: self.backend.device.queue(name, 0) for name in ("copy in", "dense", "copy out")}
        return queues | {"feed": backend.choose("cpu").device.inline("feed", self.threads)}

    # What the stages do

    def _put_in(self, slot: FrameSlot, shown: FrameInput) -> None:
        """Write a frame, its target and the rates of its tick to the slot."""
        slot.take_frame(shown.image)
        if self.config.ignore_depth and self.wiring.frame[2] == 4:
            slot.frame.reshape(-1, 4)[:, 3] = 0
        slot.wanted, slot.supervised = shown.wanted, shown.heat is not None
        if shown.heat is not None:
            slot.target[:] = shown.heat
        self._put_rates(slot)

    def _put_rates(self, slot: FrameSlot) -> None:
        """Rates and flags of the slot's tick; they are made of whole layers', at the few ticks where those change."""
        step, config, layer = slot.tick, self.config, self.wiring.layer
        before, now, after = (config.rates(k) for k in (step - 1, step, step + 1))
        early = config.compat is None and step < self.layout.steps - 1  # nothing was predicted so long ago
        was, self._in_force = self._in_force, (before, now, after, early, self.frozen)
        slot.fresh = was is None or any(old is not new for old, new in zip(was, self._in_force, strict=True))
        slot.resumes, slot.rests = False, NOBODY
        if not slot.fresh:
            return
        rate, momentum = now
        learns = (rate != 0) | (momentum != 0) if config.wiring == "cuda" else rate != 0
        resumes = np.zeros_like(learns)
        if self._lessons:
            learned = before[0] != 0
            slot.rests = np.flatnonzero((learned & ~learns)[layer])
            resumes, learns = learns & ~learned, learns & learned
        flags = np.stack([learns & (not early), after[0] != 0, resumes]) & (not self.frozen)
        slot.rates[:], slot.flags[:] = np.stack(now)[:, layer], flags[:, layer]
        slot.resumes = bool(flags[2].any())

    def _send(self, slot: FrameSlot) -> None:
        copy = self.backend.device.copy
        copy(slot.frame_dev, slot.frame)
        if slot.supervised:
            copy(slot.target_dev, slot.target)

    def tape(self, step: int):
        """The tape (B, T) that a tick writes, or has written: those of the last `steps` ticks and this one stand."""
        return self.state[f"tape_{step % (self.layout.steps + 1)}"]

    def tick(self, slot: FrameSlot) -> None:
        """Show the frame to the units, let them learn and predict, collect what is to come home."""
        self._set_rates(slot)
        scale = 1 / 255 if slot.frame.dtype == np.uint8 else 1.0
        self.backend.pvm.show(self.state[f"world_{slot.tick % 2}"], slot.frame_dev, scale)
        self._move(slot)
        if slot.wanted:
            self._look(slot)

    def _set_rates(self, slot: FrameSlot) -> None:
        if slot.fresh:
            self.backend.device.copy(self._rates, slot.rates)
            self.backend.device.copy(self._flags, slot.flags)

    def _move(self, slot: FrameSlot) -> None:
        t, state = slot.tick, self.state
        learns, adapts, resumes = self._chosen
        record, before = self.tape(t - self.layout.steps), state[f"signals_{(t - 1) % 2}"]
        if self._lessons:
            self._lessons.keep(slot.rests, record, before)
            if slot.resumes:
                self._advance(slot, self._lessons.written, *self._lessons.record, resumes, self._lessons.nobody)
        written = state[f"world_{(t + 1) % 2}"], self.tape(t), state[f"signals_{t % 2}"], state["integral"]
        self._advance(slot, written, record, before, learns, adapts)

    def _advance(self, slot: FrameSlot, written: tuple, record, before, learns, adapts) -> None:
        """The `Pvm` contract's tick: what it writes, what it learns from, who learns."""
        t, state, config = slot.tick, self.state, self.config
        world, tape, signals, integral = written
        scaled = state.get("low"), state.get("high")
        now = contract.State(
            world, tape, signals, integral, self._delta, *scaled, slot.miss_dev, self.weights, self.velocity
        )
        past = contract.Past(state[f"world_{t % 2}"], self.tape(t - 1), record, before)
        rate, momentum = self._speed
        learning = contract.Learning(rate, momentum, learns, adapts, config.wiring == "cuda")
        squeeze = (0.8, 0.1) if config.squeeze else (1.0, 0.0)
        gathering = contract.Gathering(*squeeze, config.tau, *config.factors(t))
        units = 0, len(self.wiring.hidden)
        self.backend.pvm.tick(now, self._plan, past, learning, gathering, self._activation, *units)

    @property
    def _activation(self) -> str:
        slip = self.config.compat == "cuda2023" and self.config.activation == "rational"
        return "rational2023" if slip else self.config.activation

    def _read(self, slot: FrameSlot) -> None:
        """The readouts, of what the units have made of this frame, or had expected of it."""
        t, found = slot.tick, self.readouts.config
        tape = self.tape(t if self.config.wiring == "cuda" else t - 1)
        rate = found.rate(t) if slot.supervised and t >= found.start and not self.frozen else 0.0
        y = self.readouts.step(tape, slot.target_dev, rate) if rate else self.readouts.forward(tape)
        if slot.wanted:
            self.backend.device.copy(slot.heat_dev, y)

    def _look(self, slot: FrameSlot) -> None:
        """Collect what is to come home in arrays of the slot."""
        for part, index in zip(_rows(slot.picture_dev), self._picture_at, strict=True):
            self.backend.pvm.collect(part, self.tape(slot.tick), index)
        if self.backend.device.host_memory:
            self._publish(slot)

    def _home(self, slot: FrameSlot) -> None:
        names = ("miss", "picture", "heat") if self.readouts else ("miss", "picture")
        for name in names if slot.wanted else names[:1]:
            self.backend.device.copy(getattr(slot, name), getattr(slot, f"{name}_dev"))
        if slot.wanted:
            self._publish(slot)

    def _publish(self, slot: FrameSlot) -> None:
        """Bring home what the units have published."""
        world = self.state[f"world_{(slot.tick + 1) % 2}"].reshape(-1)
        for stream in range(self.streams):
            last = (stream + 1) * (world.size // self.streams)
            self.backend.device.copy(slot.hidden[stream], world[last - slot.hidden.shape[1] : last])

    # Keeping

    def arrays(self) -> dict[str, Any]:
        """Weights, velocity and state by name, where they are computed; those of the device are read by `fetch`."""
        found = {"weights": self.weights, "velocity": self.velocity}
        if self.readouts:
            found |= {"readout.weights": self.readouts.weights, "readout.velocity": self.readouts.velocity}
        return {name: array for name, array in (found | self.state).items() if array is not None}

    def fetch(self) -> dict[str, np.ndarray]:
        """The same as NumPy arrays; live ones on the CPU."""
        return {name: self.backend.device.to_host(array) for name, array in self.arrays().items()}

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays, named as `arrays` names them, to where they are computed."""
        for name, array in self.arrays().items():
            if name in arrays:
                self.backend.device.write(array, arrays[name])


def _all(stages: list[Stage], slot: FrameSlot) -> None:
    for stage in stages:
        stage.work(slot)


def _rows(array) -> list:
    """The parts of an array along its first axis, each without it."""
    return [array[k : k + 1].reshape(*array.shape[1:]) for k in range(len(array))]
