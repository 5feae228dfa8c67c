"""The MLP with one hidden layer: a unit of hybrid/layout.py."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import check
from ...layout import unit_layout
from ..part import Buffers
from ..slot import Slot
from ._dense import Dense
from ._gradient import Gradient

ACTIVATIONS = ("logistic", "rational", "tanh", "relu")


class Trunk(Dense):
    """An MLP inputs -> hidden -> outputs, trained by SGD with momentum on the mean loss of a batch.

    activation  "logistic", "rational", "tanh" or "relu", on both layers

    MLP has any depth, other optimisers, dropout, layer norm. Raises ValueError for sizes below 1, another activation, a rate
    that is negative or not finite and a momentum of 1 or more.
    """

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

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on, with these kernels; called within the work of a queue."""
        self._device, self._kernels, self._plan = device, kernels.units, kernels.units.plan(self.layout)
        self._weights = device.from_host(self.weights)
        self._velocity = None if self.velocity is None else device.from_host(self.velocity)
        self.gradient = Gradient(device, self.weights.size, kernels.optimiser.merge)

    def buffers(self) -> Buffers:
        """The activations of both layers, and their gradients."""
        widths = dict.fromkeys(("inner", "inner_grad"), self.hidden) | dict.fromkeys(("hidden", "grad"), self.outputs)
        return Buffers(widths, begun=("inner", "hidden"))

    def forward(self, slot: Slot) -> None:
        """Write slot.inner_dev and slot.hidden_dev from slot.x_dev."""
        written = (slot.hidden_dev, slot.inner_dev)
        self._kernels.forward(*written, self._plan, self._weights, slot.x_dev, self.activation)

    def falling(self, slot: Slot) -> Iterator[int]:
        """Backward through both layers at once; see Stages."""
        written = (slot.x_grad_dev, self.gradient.next(), slot.grad_dev, slot.inner_grad_dev)
        read = (self._weights, slot.hidden_dev, slot.inner_dev, slot.x_dev)
        self._kernels.backward(*written, self._plan, *read, self.activation)
        yield 0

    def move(self, slot: Slot) -> None:
        """Move the weights against the gradient that was gathered since the last call, and clear it."""
        self.gradient.close()
        rate = self.rate * (slot.scale / slot.examples)
        self._kernels.update(self._weights, self._velocity, self.gradient.part(), rate, self.momentum)

    def parameters(self) -> dict[str, np.ndarray]:
        """Weights, and their velocity where there is momentum, by name: arrays of the host."""
        return {"weights": self.weights} | ({} if self.velocity is None else {"velocity": self.velocity})

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again, and its kind."""
        names = ("kind", "inputs", "hidden", "outputs", "activation", "rate", "momentum", "seed")
        return {name: getattr(self, name) for name in names}

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        pairs = ((self.weights, self._weights), (self.velocity, self._velocity))
        return [(host, there) for host, there in pairs if host is not None]


def _glorot(inputs: int, hidden: int, outputs: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform weights of variance 2 / (fan in + fan out), zero biases (Glorot and Bengio 2010)."""
    parts = []
    for fan_in, fan_out in ((inputs, hidden), (hidden, outputs)):
        bound = np.sqrt(6 / (fan_in + fan_out))
        parts += [rng.uniform(-bound, bound, fan_out * fan_in), np.zeros(fan_out)]
    return np.concatenate(parts).astype(np.float32)
