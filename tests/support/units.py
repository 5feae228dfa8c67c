"""Collections of MLPs on either backend: random arrays of one call, sizes for all ways through the kernels, checks."""

import numpy as np

from bench.oracles import units as oracle
from bench.oracles.units import ACTIVATIONS, RAGGED, SIXTY, close
from hybrid.units import unit_layout
from tests.support.host import HOST, kernels

MANY = tuple(size * 8 for size in ([7, 33, 1, 12, 4], [5, 2, 1, 33, 3], [6, 34, 1, 3, 8]))  # enough to be no GEMMs
# Around a warp, and far from it
WARPS = [31, 32, 33, 5, 64, 1, 40], [33, 31, 32, 1, 2, 7, 3], [1, 33, 31, 32, 3, 6, 66]
WRITTEN = ("loss", "y", "hidden", "weights", "velocity", "y_grad", "hidden_grad")  # by a step
PLACES = {"weights": "w", "velocity": "w", "weight_grad": "w", "hidden": "h", "hidden_grad": "h"}


class Case:
    """Random arrays of one call by the contract's names: in `host`, and after `on` where the kernels compute."""

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

    def on(self, place=HOST):
        """Put everything on a device, or beside the CPU's kernels."""
        self.place, self.units = place, kernels(place, "units")
        self.there = {name: None if array is None else place.put(array) for name, array in self.host.items()}
        self.there |= {name: place.empty(shape, np.float32) for name, shape in self.shapes.items()}
        self.plan = place.run(self.units.plan, self.layout)
        return self

    def alone(self, u):
        """A case of unit u alone, with copies of its arrays."""
        found = Case(len(self.host["x"]), self.momentum, [size[u : u + 1] for size in self.layout[:3]])
        for name, array in self.host.items():
            found.host[name] = None if array is None else array[..., self.span(name, u)].copy()
        return found

    def span(self, name, u):
        """Where unit u is in an array."""
        at = range(len(self.layout.inputs) + 1) if name == "loss" else getattr(self.layout, f"{place_of(name)}_at")
        return slice(at[u], at[u + 1])

    def forward(self, activation):
        written, read = self.named("y", "hidden"), self.named("weights", "x")
        self.place.run(self.units.forward, *written, self.plan, *read, activation)

    def backward(self, activation, x_grad=True):
        written = self.named("x_grad", "weight_grad", "y_grad", "hidden_grad")
        read = self.named("weights", "y", "hidden", "x")
        written = [written[0] if x_grad else None, *written[1:]]
        self.place.run(self.units.backward, *written, self.plan, *read, activation)

    def update(self, rate, momentum):
        self.place.run(self.units.update, *self.named("weights", "velocity", "weight_grad"), rate, momentum)

    def step(self, activation):
        rate = self.rate if isinstance(self.rate, float) else self.place.put(self.rate)
        read = self.named("x", "target")
        self.place.run(self.units.step, *self.named(*WRITTEN), self.plan, *read, rate, self.momentum, activation)

    def named(self, *names):
        return [self.there[name] for name in names]

    def get(self, name):
        return self.place.get(self.there[name])


def place_of(name):
    """The letter of an array's places in a layout."""
    return PLACES.get(name, "x" if name.startswith("x") else "y")


def check_forward_and_backward(case, activation, terms):
    """Against the oracle; terms: see `close`."""
    host = case.host
    case.forward(activation)
    hidden, y = oracle.forward(case.layout, host["weights"], host["x"], activation)
    close(case.get("hidden"), hidden, np.float32, terms)
    close(case.get("y"), y, np.float32, terms)

    # from the same activations: relu's slope jumps where a rounding changes the sign
    given = (host["y_grad"], case.get("hidden").astype(float), case.get("y").astype(float), host["x"])
    x_grad, weight_grad = oracle.backward(case.layout, host["weights"], *given, activation)
    case.backward(activation)
    close(case.get("x_grad"), x_grad, np.float32, terms)
    close(case.get("weight_grad"), host["weight_grad"] + weight_grad, np.float32, len(host["x"]))


def check_step(case, activation):
    """A step against the oracle."""
    host = case.host
    hidden, y = oracle.forward(case.layout, host["weights"], host["x"], activation)
    case.step(activation)
    close(case.get("hidden"), hidden, np.float32, 150)
    close(case.get("y"), y, np.float32, 150)
    read = (case.get("hidden"), case.get("y"), host["x"], host["target"], case.rate, case.momentum, activation)
    loss, weights, speed = oracle.step(case.layout, host["weights"], host["velocity"], *read)
    terms = int(max(case.layout.inputs)) * len(host["x"])
    close(case.get("weights"), weights, np.float32, terms)
    if host["velocity"] is not None:
        close(case.get("velocity"), speed, np.float32, terms)
    close(case.get("loss"), loss, np.float32, terms)
    slope = ACTIVATIONS[activation][1]
    y_grad = (case.get("y").astype(float) - host["target"]) * slope(case.get("y").astype(float))
    close(case.get("y_grad"), y_grad, np.float32, 1)


def check_ensemble(place, batch, momentum, steps):
    """60 MLPs of four sizes, each with a rate of its own: to the bit as many runs of one unit."""
    together = Case(batch, momentum, SIXTY).on(place)
    together.rate = np.geomspace(1e-3, 1, 60).astype(np.float32)
    for _ in range(steps):
        together.step("logistic")
    found = {name: together.get(name) for name in WRITTEN if together.there[name] is not None}
    for u in range(60):
        case = together.alone(u).on(place)
        case.rate = float(together.rate[u])
        for _ in range(steps):
            case.step("logistic")
        for name, array in found.items():
            assert case.get(name).tobytes() == array[..., together.span(name, u)].tobytes(), (u, name)
