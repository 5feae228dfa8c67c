"""Layers of an MLP in float64 NumPy, and kinds of them: what both backends are held to."""

from typing import Any

import numpy as np

from bench.oracles.units import ACTIVATIONS, close
from hybrid.contract import Layer
from tests.support.host import kernels

GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1
KEY = 2**63 - 12345
PLAIN: dict[str, Any] = {"bias": True, "activation": "tanh", "dropout": 0.0}
KINDS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "no bias": PLAIN | {"bias": False, "activation": "logistic"},
    "linear": PLAIN | {"activation": "linear"},
    "relu": PLAIN | {"activation": "relu"},
    "dropout": PLAIN | {"dropout": 0.3},
    "dropout without bias": PLAIN | {"bias": False, "activation": "relu", "dropout": 0.2},
}


def layer(kind: str, inputs: int, outputs: int, at: int = 0) -> Layer:
    """Of this kind."""
    return Layer(inputs, outputs, at, **KINDS[kind])


def size(of: Layer) -> int:
    return of.outputs * (of.inputs + of.bias)


def mix(x: int) -> int:
    """SplitMix64's output function, in Python's whole numbers."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def mask(of: Layer, batch: int, key: int | None) -> np.ndarray:
    """What activations are multiplied by: 0 or 1 / (1 - dropout)."""
    if key is None or not of.dropout:
        return np.ones((batch, of.outputs))
    draws = [mix(key + (place + 1) * GOLDEN & MASK) >> 32 for place in range(batch * of.outputs)]
    kept = np.array(draws).reshape(batch, of.outputs) / 2**32 >= of.dropout
    return kept / (1 - of.dropout)


def parts(of: Layer, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix and bias in float64; one that is missing changes nothing."""
    o, at = of.outputs, of.at + of.inputs * of.outputs
    bias = numbers[at : at + o].astype(float) if of.bias else np.zeros(o)
    return numbers[of.at : at].reshape(o, of.inputs).astype(float), bias


def forward(of: Layer, weights: np.ndarray, x: np.ndarray, key: int | None) -> np.ndarray:
    return activate(before(of, weights, x), of.activation) * mask(of, len(x), key)


def before(of: Layer, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What the activation takes."""
    matrix, bias = parts(of, weights)
    return x.astype(float) @ matrix.T + bias


def backward(of: Layer, weights: np.ndarray, x: np.ndarray, out_grad: np.ndarray, key: int | None):
    """d loss / d x and d loss / d weights, from d loss / d out; weights in front of the layer's have gradient 0."""
    delta = out_grad * mask(of, len(x), key) * slope(before(of, weights, x), of.activation)
    grads = [(delta.T @ x).ravel(), *([delta.sum(0)] if of.bias else [])]
    return delta @ parts(of, weights)[0], np.concatenate([np.zeros(of.at), *grads])


def activate(s: np.ndarray, name: str) -> np.ndarray:
    return s if name == "linear" else ACTIVATIONS[name][0](s)


def slope(s: np.ndarray, name: str) -> np.ndarray:
    return np.ones_like(s) if name == "linear" else ACTIVATIONS[name][1](activate(s, name))


class Case:
    """Random arrays of one layer, which does not begin the weights: in `host`, and where the kernels compute."""

    def __init__(self, place: Any, kind: str, batch: int, inputs: int, outputs: int):
        rng = np.random.default_rng([batch, inputs])
        self.place, self.mlp, self.layer = place, kernels(place, "mlp"), layer(kind, inputs, outputs, at=3)
        many = 3 + size(self.layer)
        made = {
            "weights": rng.normal(0, 0.3, many),
            "weight_grad": np.ones(many),
            "x": rng.normal(size=(batch, inputs)),
            "out_grad": rng.normal(size=(batch, outputs)),
        }
        self.host = {name: array.astype(np.float32) for name, array in made.items()}
        self.there = {name: place.put(array) for name, array in self.host.items()}
        self.there["x_grad"] = place.empty((batch, inputs), np.float32)
        self.there["out"] = place.empty((batch, outputs), np.float32)
        self.work = place.run(self.mlp.workspace, outputs + 2, np.float32)

    def forward(self, key: int | None = KEY) -> np.ndarray:
        out, weights, x = (self.there[name] for name in ("out", "weights", "x"))
        self.place.run(self.mlp.forward, out, self.layer, weights, x, key)
        return self.get("out")

    def backward(self, key: int | None = KEY, x_grad: bool = True) -> np.ndarray:
        names = ("x_grad", "weight_grad", "out_grad", "weights", "out", "x")
        to_x, to_weights, out_grad, *read = (self.there[name] for name in names)
        written = (to_x if x_grad else None, to_weights, out_grad, self.work)
        self.place.run(self.mlp.backward, *written, self.layer, *read, key)
        return self.get("weight_grad")

    def get(self, name: str) -> np.ndarray:
        found: np.ndarray = self.place.get(self.there[name])
        return found

    def check(self, key: int | None = KEY) -> None:
        """Both ways against NumPy."""
        weights, x, out_grad = (self.host[name] for name in ("weights", "x", "out_grad"))
        close(self.forward(key), forward(self.layer, weights, x, key), np.float32, 64)
        x_grad, weight_grad = backward(self.layer, weights, x, out_grad.astype(float), key)
        close(self.backward(key), 1 + weight_grad, np.float32, 64 * len(x))
        close(self.get("x_grad"), x_grad, np.float32, 256)
