"""The dense part of a model: one MLP between the input rows and the readout."""

from typing import Any

import numpy as np

from .layout import unit_layout
from .slot import Slot


class Trunk:
    """An MLP inputs -> hidden -> outputs, trained by SGD with momentum on the mean loss of a batch.

    activation  "logistic", "rational", "tanh" or "relu", on both layers
    """

    def __init__(self, inputs, hidden, outputs, *, activation="tanh", rate=0.1, momentum=0.0, seed=0):
        if activation not in ("logistic", "rational", "tanh", "relu"):
            raise ValueError(f'activation: found "{activation}", expected logistic, rational, tanh or relu')
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum: found {momentum}, expected at least 0 and below 1")
        self.layout = unit_layout([inputs], [hidden], [outputs])
        self.inputs, self.hidden, self.outputs = inputs, hidden, outputs
        self.activation, self.rate, self.momentum, self.seed = activation, rate, momentum, seed
        self.weights = _glorot(inputs, hidden, outputs, np.random.default_rng([seed, 2]))
        self.velocity = np.zeros_like(self.weights) if momentum else None
        self.weight_grad = np.zeros_like(self.weights)

    def forward(self, kernels, slot: Slot) -> None:
        """Write slot.inner and slot.hidden from slot.x."""
        kernels.forward(slot.hidden, slot.inner, self.layout, self.weights, slot.x, self.activation)

    def backward(self, kernels, slot: Slot) -> None:
        """Write slot.x_grad from slot.grad, which is used up, and add to the gradient of the weights."""
        written = (slot.x_grad, self.weight_grad, slot.grad, slot.inner_grad)
        kernels.backward(*written, self.layout, self.weights, slot.hidden, slot.inner, slot.x, self.activation)

    def update(self, kernels, scale: float) -> None:
        """Move the weights against the gradient gathered since the last update, by `scale` times the rate; forget it."""
        kernels.update(self.weights, self.velocity, self.weight_grad, self.rate * scale, self.momentum)
        self.weight_grad.fill(0)

    def parameters(self) -> dict[str, np.ndarray]:
        """The live arrays, by name: weights, and their velocity where there is momentum."""
        return {"weights": self.weights} | ({} if self.velocity is None else {"velocity": self.velocity})

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again."""
        names = ("inputs", "hidden", "outputs", "activation", "rate", "momentum", "seed")
        return {name: getattr(self, name) for name in names}


def _glorot(inputs, hidden, outputs, rng) -> np.ndarray:
    """Uniform weights of variance 2 / (fan in + fan out), zero biases (Glorot and Bengio 2010)."""
    parts = []
    for fan_in, fan_out in ((inputs, hidden), (hidden, outputs)):
        bound = np.sqrt(6 / (fan_in + fan_out))
        parts += [rng.uniform(-bound, bound, fan_out * fan_in), np.zeros(fan_out)]
    return np.concatenate(parts).astype(np.float32)
