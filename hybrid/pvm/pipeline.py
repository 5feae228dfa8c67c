"""The way of a frame through a model: its arrays where they are computed, and the stages that move them."""

import functools
import math
from typing import Any

import numpy as np

from .. import backend, contract
from ..engine.schedule import Stage
from . import caller, initial
from .config import Config
from .heads import Heads
from .layout import TapeLayout, taken, tape_layout, weights_at
from .prediction import Prediction
from .slot import FrameSlot, SlotSizes
from .wiring import Wiring

TOGETHER = 1 << 19  # bytes of frames that cross to a GPU in some 10 us; larger ones cross while it works on others


class Pipeline:
    """A model's arrays on its device, and the stages that a frame goes through; what it has of the host are the slots.

    config             all but its schedule, which is known to the slots
    activation         of the units
    weights, velocity  of the units; velocity None where no schedule asks for momentum
    state              all else that changes from tick to tick, by name; see `initial.state`
    readouts           `Heads`, or None
    units, layer       (u,) the units whose arrays these are, all unless ranks share them, and the layer of each
    layout             where everything of them is on the tapes
    whole              the layout of all units
    prediction         where the predicted frame is there
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
        """The arrays of all units, or of a part: the layout of all, and (u,) which these are."""
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
        self.inline.run(self._place, initial.weights(self.layout, config, seed, dtype, drawn_at))

    def _read_layout(self) -> TapeLayout:
        """Where hidden vectors are in what the readouts read."""
        return self.layout

    def _place(self, weights: np.ndarray) -> None:
        """Put everything where it is computed; within the work of a queue."""
        device, kernels, units = self.backend.device, self.backend.pvm, len(self.units)
        first = initial.state(self.layout, self.config, self.layer, weights, self.streams)
        self.plan = kernels.plan(self.layout)
        self.weights = device.from_host(_spread(device, weights))
        self.velocity = device.from_host(_spread(device, np.zeros_like(weights))) if self.config.moves else None
        self.state = {name: device.from_host(array) for name, array in first.items()}
        self.delta = device.empty(first["tape_0"].shape, self.dtype)
        self._rates = device.from_host(np.zeros((2, units), self.dtype))
        self._flags = device.from_host(np.zeros((2, units), np.uint8))
        self._speed, self._chosen = _rows(self._rates), _rows(self._flags)
        self._predicted_at = [device.from_host(index) for index in self.prediction.index]
        if self.readouts:
            self.readouts.place(device, self.backend.units, kernels.collect)

    def stages(self) -> list[Stage]:
        """The way of a frame. All that changes on the device moves on "dense", so nothing depends on how queues overlap."""
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
        """Do a stage; it comes again, with the same arrays, as soon as all those that ticks take turns at have had theirs."""
        period = math.lcm(2, self.layout.steps + 1)
        chosen = slot.complete, slot.supervised, slot.fresh, slot.readout_rate
        key = stage.name, slot.tick % period, slot.frame.dtype, *chosen, *self.config.factors(slot.tick)
        slot.recorder.run(key, stage.work, slot)

    def slot(self) -> FrameSlot:
        """Room for a frame under way."""
        return FrameSlot(self._sizes(), self.backend.device, self.dtype)

    def _sizes(self) -> SlotSizes:
        return SlotSizes(
            streams=self.streams,
            frame=self.frame_size,
            units=len(self.wiring.hidden),
            heat=self.readouts.order.size if self.readouts else 0,
            hidden=int(self.whole.hidden.sum()),
            parts=len(self.prediction.index),
        )

    def queues(self) -> dict[str, Any]:
        """A CPU does everything in turn on all its threads. Beside a GPU the caller's thread reads the feed, while the device
        works: to wait for another thread would take as long as a tick of a small model.
        """
        if self.backend.device.threads:
            return dict.fromkeys(("copy in", "dense", "feed"), self.inline)
        queues = {name: self.backend.device.queue(name, 0) for name in ("copy in", "dense", "copy out")}
        return queues | {"feed": caller.Inline("feed", self.threads)}

    # What the stages do

    def _send(self, slot: FrameSlot) -> None:
        copy = self.backend.device.copy
        copy(slot.frame_dev, slot.frame)
        if slot.supervised:
            copy(slot.target_dev, slot.target)

    def tape(self, step: int) -> Any:
        """The tape (B, T) that a tick writes, or has written: those of the last `steps` ticks and this one stand."""
        return self.state[f"tape_{step % (self.layout.steps + 1)}"]

    def tick(self, slot: FrameSlot) -> None:
        """Show the frame to the units, let them learn and predict, collect what is to be copied back."""
        self._show(slot)
        self._move(slot, 0, len(self.units))
        if slot.complete:
            self._look(slot)
            if self.backend.device.host_memory:
                self._publish(slot)

    def _show(self, slot: FrameSlot) -> None:
        """All that comes before the units: rates and the frame."""
        self._set_rates(slot)
        scale = 1 / 255 if slot.frame.dtype == np.uint8 else 1.0
        self.backend.pvm.show(self.state[f"world_{slot.tick % 2}"], slot.frame_dev, scale)

    def _set_rates(self, slot: FrameSlot) -> None:
        if slot.fresh:
            self.backend.device.copy(self._rates, slot.rates)
            self.backend.device.copy(self._flags, slot.flags)

    def _move(self, slot: FrameSlot, first: int, last: int) -> None:
        """The units first:last learn, predict and publish."""
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
        """The readouts, of what the units have made of this frame, or had expected of it."""
        assert self.readouts
        tape = self._read_tape(slot)
        rate = slot.readout_rate if slot.supervised else 0.0
        y = self.readouts.step(tape, slot.target_dev, rate) if rate else self.readouts.forward(tape)
        if slot.complete:
            self.backend.device.copy(slot.heat_dev, y)

    def _read_tape(self, slot: FrameSlot) -> Any:
        return self.tape(slot.tick if self.config.wiring == "cuda" else slot.tick - 1)

    def _look(self, slot: FrameSlot) -> None:
        """Collect what is to be copied back in arrays of the slot."""
        for part, index in zip(_rows(slot.predicted_dev), self._predicted_at, strict=True):
            self.backend.pvm.collect(part, self.tape(slot.tick), index)

    def _home(self, slot: FrameSlot) -> None:
        names = ("miss", "predicted", "heat") if self.readouts else ("miss", "predicted")
        for name in names if slot.complete else names[:1]:
            self.backend.device.copy(getattr(slot, name), getattr(slot, f"{name}_dev"))
        if slot.complete:
            self._publish(slot)

    def _publish(self, slot: FrameSlot) -> None:
        """Copy back what the units have published."""
        world = self.state[f"world_{(slot.tick + 1) % 2}"].reshape(-1)
        for stream in range(self.streams):
            last = (stream + 1) * (world.size // self.streams)
            self.backend.device.copy(slot.hidden[stream], world[last - slot.hidden.shape[1] : last])

    # Asking, between two ticks

    def predicted(self, tick: int, places: list[np.ndarray]) -> np.ndarray:
        """What the units predicted in a tick, (n, B, F), at n lists of places on the tape; see `Prediction`."""
        tape = self.backend.device.to_host(self.tape(tick))
        return np.stack([tape[:, index] for index in places])

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """The weights, and the velocities where there are any, of one unit, flat."""
        number = int(np.flatnonzero(self.units == unit)[0])
        first, last = weights_at(self.layout)[number : number + 2]
        both = {"weights": self.weights, "velocity": self.velocity}
        return {
            name: self.backend.device.to_host(array[first:last]) for name, array in both.items() if array is not None
        }

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


def _spread(device: Any, array: np.ndarray) -> np.ndarray:
    """The array for the device to take: of the host's own memory, whose pages lie on all nodes. A GPU needs no Numba for it."""
    if not device.host_memory:
        return array
    from cpu.first_touch import spread

    return spread(array)


def _rows(array: Any) -> list[Any]:
    """The parts of an array along its first axis, each without it."""
    return [array[k : k + 1].reshape(*array.shape[1:]) for k in range(len(array))]
