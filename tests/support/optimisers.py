"""Optimisers in float64 NumPy, as PyTorch defines them, and one call of each: what both backends are held to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.support.host import kernels

STATES = {"sgd": (), "momentum": ("velocity",), "adam": ("mean", "squares"), "adamw": ("mean", "squares")}
BETAS = (0.8, 0.95)
MOMENTUM = 0.9


class Move(NamedTuple):
    """Of hybrid/contract: how far weights move."""

    rate: float
    scale: float
    decay: float
    cut: Any = None


class Moved:
    """Weights and state of an optimiser in float64; `velocity` is that of cpu/units.py, minus the rate times PyTorch's."""

    def __init__(self, weights: np.ndarray):
        self.weights = weights.astype(float)
        self.velocity, self.mean, self.squares = (np.zeros_like(self.weights) for _ in range(3))
        self.updates = 0

    def step(self, kind: str, grad: np.ndarray, move: Move, most: float | None = None) -> None:
        """One update; most: the norm that the gradient is cut to."""
        g = move.scale * grad.astype(float)
        if most is not None:
            g = g * min(1, most / (float(np.linalg.norm(g)) + 1e-6))
        self.updates += 1
        if kind != "adamw":
            g = g + move.decay * self.weights
        getattr(self, f"_{kind}")(g, move)

    def _sgd(self, g, move):
        self.weights -= move.rate * g

    def _momentum(self, g, move):
        self.velocity = MOMENTUM * self.velocity - move.rate * g
        self.weights += self.velocity

    def _adam(self, g, move):
        self.mean = BETAS[0] * self.mean + (1 - BETAS[0]) * g
        self.squares = BETAS[1] * self.squares + (1 - BETAS[1]) * g * g
        mean, squares = (x / (1 - b**self.updates) for x, b in zip((self.mean, self.squares), BETAS, strict=True))
        self.weights -= move.rate * mean / (np.sqrt(squares) + 1e-8)

    def _adamw(self, g, move):
        self.weights *= 1 - move.rate * move.decay
        self._adam(g, move)


def call(kernels: Any, kind: str, arrays: dict[str, Any], move: Move, updates: int) -> tuple[Callable, tuple]:
    """The function of a backend, and its arguments; arrays: weights, grad and the state, by name."""
    weights, grad = arrays["weights"], arrays["grad"]
    if kind.startswith("adam"):
        state = (arrays["mean"], arrays["squares"])
        return kernels.adam, (weights, *state, grad, move, BETAS, updates, kind == "adamw")
    return kernels.sgd, (weights, arrays.get("velocity"), grad, move, 0.0 if kind == "sgd" else MOMENTUM)


def gradients(size: int, turns: int = 4) -> list[np.ndarray]:
    return [np.random.default_rng(turn).normal(size=size).astype(np.float32) for turn in range(turns)]


def learn(
    place: Any, kind: str, weights: np.ndarray, grads: list[np.ndarray], move: Move, most: float | None = None
) -> dict[str, np.ndarray]:
    """The arrays after updates with one gradient after another, each of which is cleared."""
    optimiser = kernels(place, "optimiser")
    there = {"weights": place.put(weights)} | {name: place.put(np.zeros_like(weights)) for name in STATES[kind]}
    work = place.run(optimiser.workspace, weights.size)
    for turn, grad in enumerate(grads):
        there["grad"] = place.put(grad)
        if most is not None:
            place.run(optimiser.clip, work, there["grad"], move.scale, most)
            move = move._replace(cut=work)
        function, arguments = call(optimiser, kind, there, move, turn + 1)
        place.run(function, *arguments)
        assert not place.get(there["grad"]).any()
    return {name: place.get(array) for name, array in there.items()}


def check_formula(place: Any, kind: str, size: int, move: Move, most: float | None) -> None:
    """Some updates, beside those in float64."""
    weights, grads = np.random.default_rng(9).normal(size=size).astype(np.float32), gradients(size)
    expected = Moved(weights)
    for grad in grads:
        expected.step(kind, grad, move, most)
    found = learn(place, kind, weights, grads, move, most)
    unit = 32 * np.finfo(np.float32).eps
    for name in ("weights", *STATES[kind]):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=unit, atol=4 * unit, err_msg=name)
