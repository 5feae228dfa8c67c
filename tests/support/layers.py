"""Layers of an MLP in float64 NumPy, and kinds of them: what both backends are held to."""

import math
from typing import Any, NamedTuple

import numpy as np

from bench.oracles.units import ACTIVATIONS
from hybrid.contract import Layer, Passed

GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1
PLAIN: dict[str, Any] = {"bias": True, "norm": False, "residual": False, "activation": "tanh", "dropout": 0.0}
KINDS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "no bias": PLAIN | {"bias": False, "activation": "logistic"},
    "linear": PLAIN | {"activation": "linear"},
    "gelu": PLAIN | {"activation": "gelu"},
    "relu": PLAIN | {"activation": "relu"},
    "norm": PLAIN | {"norm": True},
    "norm alone": PLAIN | {"norm": True, "bias": False, "activation": "linear"},
    "residual": PLAIN | {"residual": True},
    "dropout": PLAIN | {"dropout": 0.3},
    "all": {"bias": True, "norm": True, "residual": True, "activation": "gelu", "dropout": 0.2},
}


def layer(kind: str, inputs: int, outputs: int, at: int = 0) -> Layer:
    """Of this kind; where the input is added, it is as wide as the outputs."""
    own = KINDS[kind]
    return Layer(outputs if own["residual"] else inputs, outputs, at, **own)


def size(of: Layer) -> int:
    return of.outputs * (of.inputs + of.bias + 2 * of.norm)


def passed(of: Layer, batch: int, empty=np.empty, dtype=np.float32) -> Passed:
    """The arrays that a layer writes forward."""
    whole = (batch, of.outputs)
    before = empty(whole, dtype) if of.kept else None
    return Passed(empty(whole, dtype), before, empty((batch, 1), dtype) if of.norm else None)


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


class Way(NamedTuple):
    """What the oracle of one layer knows after forward."""

    out: np.ndarray
    normal: np.ndarray
    scale: np.ndarray
    s: np.ndarray


def parts(of: Layer, numbers: np.ndarray) -> list[np.ndarray]:
    """Matrix, bias, gain and shift in float64; those that are missing change nothing."""
    o, at = of.outputs, of.at + of.inputs * of.outputs
    found = [numbers[of.at : at].reshape(o, of.inputs).astype(float)]
    for there, instead in ((of.bias, 0.0), (of.norm, 1.0), (of.norm, 0.0)):
        found.append(numbers[at : at + o].astype(float) if there else np.full(o, instead))
        at += o * there
    return found


def forward(of: Layer, weights: np.ndarray, x: np.ndarray, key: int | None) -> Way:
    matrix, bias, gain, shift = parts(of, weights)
    x = x.astype(float)
    normal, scale = x @ matrix.T + bias, np.ones((len(x), 1))
    if of.norm:
        scale = 1 / np.sqrt(normal.var(1, keepdims=True) + 1e-5)
        normal = (normal - normal.mean(1, keepdims=True)) * scale
    s = gain * normal + shift
    out = activate(s, of.activation) * mask(of, len(x), key) + (x if of.residual else 0)
    return Way(out, normal, scale, s)


def backward(of: Layer, weights: np.ndarray, x: np.ndarray, out_grad: np.ndarray, key: int | None):
    """d loss / d x and d loss / d weights, from d loss / d out; weights in front of the layer's have gradient 0."""
    way, (matrix, _, gain, _) = forward(of, weights, x, key), parts(of, weights)
    delta = out_grad * mask(of, len(x), key) * slope(way.s, of.activation)
    sums = [(delta * way.normal).sum(0), delta.sum(0)] if of.norm else []
    if of.norm:
        delta = delta * gain
        along = (delta * way.normal).mean(1, keepdims=True)
        delta = way.scale * (delta - delta.mean(1, keepdims=True) - way.normal * along)
    grads = [(delta.T @ x).ravel(), *([delta.sum(0)] if of.bias else []), *sums]
    return delta @ matrix + (out_grad if of.residual else 0), np.concatenate([np.zeros(of.at), *grads])


def activate(s: np.ndarray, name: str) -> np.ndarray:
    if name == "linear":
        return s
    return s * normal_cdf(s) if name == "gelu" else ACTIVATIONS[name][0](s)


def slope(s: np.ndarray, name: str) -> np.ndarray:
    if name == "linear":
        return np.ones_like(s)
    if name == "gelu":
        return normal_cdf(s) + s * np.exp(-s * s / 2) / math.sqrt(2 * math.pi)
    return ACTIVATIONS[name][1](activate(s, name))


def normal_cdf(s: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda value: math.erfc(-value / math.sqrt(2)) / 2)(s)
