"""One online step of a collection of MLPs of one shape: sizes, inputs, rates, oracle, and ours.

Rivals are in units_torch.py and units_jax.py; units.py and collections.py measure them.
"""

from collections.abc import Callable

import numpy as np

from bench.measure import Work
from hybrid.units import unit_layout

SIZES = INPUTS, HIDDEN, OUTPUTS = 150, 49, 150  # of a unit of Piekniewski's video model
RATE, SAMPLE, SEED = 0.01, 7, 0  # SAMPLE: units checked against the oracle, spread over all
DRAWN = 1000  # units whose first weights are drawn


class Problem:
    """The sizes, inputs and targets that all rivals share, their first weights, and what one step makes of them.

    name  as the record's `work` says it
    """

    def __init__(self, units: int, batch: int, momentum: float, name: str = "units.step", sizes=SIZES):
        self.units, self.batch, self.momentum, self.name, self.sizes = units, batch, momentum, name, sizes
        n, h, o = sizes
        self.layout = unit_layout([n] * units, [h] * units, [o] * units)
        self.size = int(self.layout.w_at[1])
        self.parameters = units * self.size
        self.moved = (16 if momentum else 8) * self.parameters  # bytes: each number is read and written once
        # a weight takes 2 B operations forward and 2 B for its gradient, and one of the second layer 2 B more for the error
        self.operations = (4 * self.parameters + 2 * units * o * h) * batch
        rng = np.random.default_rng(SEED)
        self.x = rng.random((batch, units * n), dtype=np.float32)
        self.target = rng.random((batch, units * o), dtype=np.float32)
        self.sample = np.linspace(0, units - 1, SAMPLE).astype(int)
        first = self.sampled(self.weights()).astype(np.float64)
        self.expected = np.stack([self._step(u, weights) for u, weights in zip(self.sample, first, strict=True)])

    def weights(self) -> np.ndarray:
        """The same first weights for every rival; those of the first units come again, since numbers take time to draw."""
        some = min(self.units, DRAWN) * self.size
        drawn = np.random.default_rng(SEED + 1).standard_normal(some, dtype=np.float32) * np.float32(0.1)
        return np.resize(drawn, self.parameters)

    def sampled(self, weights: np.ndarray) -> np.ndarray:
        """The weights of the units of the sample, one row a unit."""
        return weights.reshape(self.units, self.size)[self.sample]

    def parts(self) -> list[np.ndarray]:
        """First weights (U, h, n), bias (U, h), second weights (U, o, h) and bias (U, o) of all units, each contiguous."""
        n, h, o = self.sizes
        shapes = [(self.units, h, n), (self.units, h), (self.units, o, h), (self.units, o)]
        cuts = np.split(self.weights().reshape(self.units, self.size), np.cumsum([h * n, h, o * h]), axis=1)
        return [np.ascontiguousarray(part).reshape(shape) for part, shape in zip(cuts, shapes, strict=True)]

    def by_unit(self) -> list[np.ndarray]:
        """Inputs (U, B, n) and targets (U, B, o)."""
        signals = (array.reshape(self.batch, self.units, -1).swapaxes(0, 1) for array in (self.x, self.target))
        return [np.ascontiguousarray(array) for array in signals]

    def check_parts(self, parts) -> None:
        """As `check`, of the four arrays of all units, as `parts` gives them, or of the rows of the sample alone."""
        self.check(np.concatenate([np.asarray(part).reshape(SAMPLE, -1) for part in parts], axis=1))

    def check(self, sampled: np.ndarray) -> None:
        """Raise unless a step from the first weights has led to these, in the units of the sample."""
        # a change is a float32 sum of batch products, and is rounded once more when added to its weight
        np.testing.assert_allclose(sampled, self.expected, rtol=1e-6, atol=1e-6 * np.sqrt(self.batch))

    def _step(self, unit: int, weights: np.ndarray) -> np.ndarray:
        """The oracle: one step of one unit in float64; the velocity begins at 0, so momentum does not show yet."""
        n, h, o = self.sizes
        first, first_bias, second, second_bias = np.split(weights, np.cumsum([h * n, h, o * h]))
        second = second.reshape(o, h)
        x = self.x[:, unit * n : (unit + 1) * n].astype(np.float64)
        target = self.target[:, unit * o : (unit + 1) * o]
        hidden = 1 / (1 + np.exp(-x @ first.reshape(h, n).T - first_bias))
        y = 1 / (1 + np.exp(-hidden @ second.T - second_bias))
        delta = (y - target) * y * (1 - y)
        inner = delta @ second * hidden * (1 - hidden)
        grads = (inner.T @ x, inner.sum(0), delta.T @ hidden, delta.sum(0))
        return weights - RATE * np.concatenate([grad.ravel() for grad in grads])

    def work(self, who: str, step: Callable[[], None], check: Callable[[], None], threads: int, warm: int = 2) -> Work:
        """A rival at this problem."""
        params = {"units": self.units, "batch": self.batch, "momentum": self.momentum}
        work = (self.name, who, params, self.parameters, "parameters/s", step, check)
        return Work(*work, moved=self.moved, threads=threads, warm=warm)


def ours(problem: Problem, threads: int) -> Work:
    """The fused step."""
    from cpu import units

    _, h, o = problem.sizes
    weights = problem.weights()
    velocity = np.zeros_like(weights) if problem.momentum else None
    widths = (o, h, o, h)
    y, hidden, y_grad, hidden_grad = (np.empty((problem.batch, problem.units * width), np.float32) for width in widths)
    written = (np.empty(problem.units, np.float32), y, hidden, weights, velocity, y_grad, hidden_grad)
    read = (problem.layout, problem.x, problem.target, RATE, problem.momentum, "logistic")

    def check():
        problem.check(problem.sampled(weights))

    return problem.work("ours", lambda: units.step(*written, *read), check, threads)
