"""A trunk that is one matrix, in NumPy."""

from dataclasses import dataclass

import numpy as np

from hybrid.schedule.schedule import Buffers, Stage
from hybrid.settings import number, option


@dataclass(frozen=True)
class Options:
    trunk_rate: float = option(0.1, "toy trunk: learning rate", type=number)


class LinearTrunk:
    kind, places, ready = "linear", ("cpu",), ("backward", "x_grad out")

    def __init__(self, inputs, outputs, *, rate=0.1, seed=0):
        self.inputs, self.outputs, self.rate, self.seed = inputs, outputs, rate, seed
        self.weights = np.random.default_rng(seed).normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        self._grad = np.zeros_like(self.weights)

    def place(self, device, kernels):
        pass

    def buffers(self):
        return Buffers(dict.fromkeys(("hidden", "grad"), self.outputs))

    def begin(self, copy):
        return [Stage("forward", "dense", self.forward, ("gather", "x in")), *copy("hidden out", "forward")]

    def finish(self, copy, ready):
        return [Stage("backward", "dense", self.backward, ready), *copy("x_grad out", "backward")]

    def update(self):
        return [Stage("update", "dense", self.move, ("backward",))]

    def forward(self, slot):
        np.matmul(slot.x_dev, self.weights.T, out=slot.hidden_dev)

    def backward(self, slot):
        np.matmul(slot.grad_dev, self.weights, out=slot.x_grad_dev)
        self._grad += slot.grad_dev.T @ slot.x_dev

    def move(self, slot):
        self.weights -= self.rate * slot.scale / slot.examples * self._grad
        self._grad[:] = 0

    def parameters(self):
        return {"weights": self.weights}

    def fetch(self):
        pass

    def send(self):
        pass

    def describe(self):
        return {name: getattr(self, name) for name in ("kind", "inputs", "outputs", "rate", "seed")}


def make(inputs, outputs, options, *, seed):
    return LinearTrunk(inputs, outputs, rate=options["trunk_rate"], seed=seed)


def rebuild(**facts):
    return LinearTrunk(**facts)
