"""A trunk that is one MLP with one hidden layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import check, mirror
from ...layout import unit_layout
from ...settings import number, option, positive
from ..part import Buffers, Copies
from ..schedule import Stage
from ..slot import Slot

ACTIVATIONS = ("logistic", "rational", "tanh", "relu")


@dataclass(frozen=True)
class Options:
    """What the command line takes for an MLP."""

    hidden: int = option(256, "hidden width of the trunk", type=positive)
    activation: str = option("tanh", "of the trunk", choices=ACTIVATIONS)
    momentum: float = option(0.9, "momentum of the trunk", group="training", type=number)
    trunk_rate: float = option(0.2, "learning rate of the trunk", group="training", type=number)


class Trunk:
    """An MLP inputs -> hidden -> outputs, trained by SGD with momentum on the mean loss of a batch.

    activation  "logistic", "rational", "tanh" or "relu", on both layers

    pickle and copy make a trunk with weights of its own; it computes where the engine that gets it puts it. Raises
    ValueError for sizes below 1, another activation, a rate that is negative or not finite and a momentum of 1 or more.
    """

    kind = "mlp"
    places: tuple[str, ...] = ("cpu", "cuda")
    ready: tuple[str, ...] = ("backward", "x_grad out")

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        *,
        activation: str = "tanh",
        rate: float = 0.1,
        momentum: float = 0.0,
        seed: int = 0,
    ):
        sizes = (("inputs", inputs), ("hidden", hidden), ("outputs", outputs))
        self.inputs, self.hidden, self.outputs = (check.whole(name, size, 1) for name, size in sizes)
        self.activation = check.choice("activation", activation, ACTIVATIONS)
        self.rate, self.momentum = check.number("rate", rate, 0), check.number("momentum", momentum, 0)
        if self.momentum >= 1:
            raise ValueError(f"momentum: found {momentum}, expected a number below 1")
        self.seed = check.whole("seed", seed, 0)
        self.layout = unit_layout([self.inputs], [self.hidden], [self.outputs])
        self.weights = _glorot(self.inputs, self.hidden, self.outputs, np.random.default_rng([self.seed, 2]))
        self.velocity = np.zeros_like(self.weights) if momentum else None
        self._device: Any = None  # until it is placed

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on, with these kernels; called within the work of a queue."""
        self._device, self._kernels, self._plan = device, kernels.units, kernels.units.plan(self.layout)
        self._weights = device.from_host(self.weights)
        self._velocity = None if self.velocity is None else device.from_host(self.velocity)
        self._weight_grad = device.from_host(np.zeros_like(self.weights))

    def buffers(self) -> Buffers:
        """The activations of both layers, and their gradients."""
        widths = dict.fromkeys(("inner", "inner_grad"), self.hidden) | dict.fromkeys(("hidden", "grad"), self.outputs)
        return Buffers(widths, begun=("inner", "hidden"))

    def begin(self, copy: Copies) -> list[Stage]:
        """Forward."""
        return [Stage("forward", "dense", self.forward, ("gather", "x in")), *copy("hidden out", "forward")]

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """Backward; the gradient of the weights is gathered."""
        return [Stage("backward", "dense", self.backward, ready), *copy("x_grad out", "backward")]

    def update(self) -> list[Stage]:
        """The weights move, once a tick."""
        return [Stage("update", "dense", self.move, ("backward",))]

    def forward(self, slot: Slot) -> None:
        """Write slot.inner_dev and slot.hidden_dev from slot.x_dev."""
        written = (slot.hidden_dev, slot.inner_dev)
        self._kernels.forward(*written, self._plan, self._weights, slot.x_dev, self.activation)

    def backward(self, slot: Slot) -> None:
        """Write slot.x_grad_dev from slot.grad_dev, which is overwritten, and add to the gradient of the weights."""
        written = (slot.x_grad_dev, self._weight_grad, slot.grad_dev, slot.inner_grad_dev)
        read = (self._weights, slot.hidden_dev, slot.inner_dev, slot.x_dev)
        self._kernels.backward(*written, self._plan, *read, self.activation)

    def move(self, slot: Slot) -> None:
        """Move the weights against the gradient that was gathered since the last call, and clear it."""
        rate = self.rate * (slot.scale / slot.examples)
        self._kernels.update(self._weights, self._velocity, self._weight_grad, rate, self.momentum)

    def parameters(self) -> dict[str, np.ndarray]:
        """Weights, and their velocity where there is momentum, by name: arrays of the host."""
        return {"weights": self.weights} | ({} if self.velocity is None else {"velocity": self.velocity})

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""
        mirror.fetch(self._device, self._pairs())

    def send(self) -> None:
        """Bring the parameters from the host to the device; nothing to do where the device shares its memory."""
        mirror.send(self._device, self._pairs())

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        pairs = ((self.weights, self._weights), (self.velocity, self._velocity))
        return [(host, there) for host, there in pairs if host is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        if self._device:
            self.fetch()
        return _again, (self.describe(), self.parameters())

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again, and its kind."""
        names = ("kind", "inputs", "hidden", "outputs", "activation", "rate", "momentum", "seed")
        return {name: getattr(self, name) for name in names}


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> Trunk:
    """From options of the command line; see hybrid/engine/trunk/__init__.py."""
    given = {"activation": options["activation"], "rate": options["trunk_rate"], "momentum": options["momentum"]}
    return Trunk(inputs, options["hidden"], outputs, seed=seed, **given)


def rebuild(inputs: int, hidden: int, outputs: int, kind: str = "mlp", **facts: Any) -> Trunk:
    """From describe()."""
    return Trunk(inputs, hidden, outputs, **facts)


def least(inputs: int, hidden: int, outputs: int, **facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return hidden * (inputs + outputs)


def _again(facts: dict[str, Any], parameters: dict[str, np.ndarray]) -> Trunk:
    """A trunk as it was pickled or copied, not yet placed."""
    made = rebuild(**facts)
    for name, array in made.parameters().items():
        array[:] = parameters[name]
    return made


def _glorot(inputs: int, hidden: int, outputs: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform weights of variance 2 / (fan in + fan out), zero biases (Glorot and Bengio 2010)."""
    parts = []
    for fan_in, fan_out in ((inputs, hidden), (hidden, outputs)):
        bound = np.sqrt(6 / (fan_in + fan_out))
        parts += [rng.uniform(-bound, bound, fan_out * fan_in), np.zeros(fan_out)]
    return np.concatenate(parts).astype(np.float32)
