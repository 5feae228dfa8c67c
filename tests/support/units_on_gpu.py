"""Collections of MLPs on the device of a test, and sizes that take all ways through the kernels."""

import numpy as np

from bench.oracles.units import RAGGED
from gpu import units
from hybrid.units import unit_layout

MANY = tuple(size * 8 for size in ([7, 33, 1, 12, 4], [5, 2, 1, 33, 3], [6, 34, 1, 3, 8]))  # enough to be no GEMMs
# Around a warp, and far from it
WARPS = [31, 32, 33, 5, 64, 1, 40], [33, 31, 32, 1, 2, 7, 3], [1, 33, 31, 32, 3, 6, 66]


class Case:
    """Random arrays of one call by the contract's names: on the host, and after `on` on the device."""

    def __init__(self, batch, momentum=0.0, sizes=RAGGED, seed=0):
        rng = np.random.default_rng([seed, batch])
        self.layout = unit_layout(*sizes)
        *_, w, x, h, y = (int(at[-1]) for at in self.layout)
        self.rate, self.momentum = 0.05, momentum
        self.host = {
            "weights": rng.normal(0, 0.2, w),
            "velocity": rng.normal(0, 0.02, w) if momentum else None,
            "weight_grad": rng.normal(0, 0.1, w),
            "x": rng.normal(size=(batch, x)),
            "target": rng.random((batch, y)),
            "y_grad": rng.normal(size=(batch, y)),
        }
        self.host = {name: array if array is None else array.astype(np.float32) for name, array in self.host.items()}
        self.shapes = {"loss": (len(sizes[0]),), "y": (batch, y), "hidden": (batch, h), "hidden_grad": (batch, h)}
        self.shapes["x_grad"] = (batch, x)

    def on(self, gpu):
        """Put everything on the device."""
        self.gpu = gpu
        self.there = {name: None if array is None else gpu.put(array) for name, array in self.host.items()}
        self.there |= {name: gpu.empty(shape, np.float32) for name, shape in self.shapes.items()}
        self.plan = gpu.run(units.plan, self.layout)
        return self

    def forward(self, activation):
        written, read = self.named("y", "hidden"), self.named("weights", "x")
        self.gpu.run(units.forward, *written, self.plan, *read, activation)

    def backward(self, activation, x_grad=True):
        written = self.named("x_grad", "weight_grad", "y_grad", "hidden_grad")
        read = self.named("weights", "y", "hidden", "x")
        self.gpu.run(units.backward, written[0] if x_grad else None, *written[1:], self.plan, *read, activation)

    def step(self, activation):
        written = self.named("loss", "y", "hidden", "weights", "velocity", "y_grad", "hidden_grad")
        rate = self.rate if isinstance(self.rate, float) else self.gpu.put(self.rate)
        self.gpu.run(units.step, *written, self.plan, *self.named("x", "target"), rate, self.momentum, activation)

    def named(self, *names):
        return [self.there[name] for name in names]

    def get(self, name):
        return self.gpu.get(self.there[name])
