"""The input table: ids in, the trunk's input out; its rows learn by plain SGD."""

from typing import Any

import numpy as np

from . import backend as backends


class Embedding:
    """A table of `rows` vectors of `width` numbers.

    per_example  how many ids an example has; their vectors are concatenated (1: the vector itself)
    mean         instead: any number of ids an example (a bag), whose vectors are averaged
    undivided    with mean: every vector of a bag gets the whole gradient of the mean, as in word2vec, not its share
    rate         step of SGD on the sum of the loss over a batch
    spread       rows start uniform in [-spread, spread]; default 0.5 / width, as in word2vec
    """

    def __init__(self, rows, width, *, per_example=1, mean=False, undivided=False, rate=0.05, spread=None, seed=0):
        for name, value in (("rows", rows), ("width", width), ("per_example", per_example)):
            if value < 1:
                raise ValueError(f"{name}: found {value}, expected at least 1")
        self.rows, self.width, self.per_example, self.mean = rows, width, 1 if mean else per_example, mean
        self.undivided, self.rate, self.seed = undivided, rate, seed
        self.spread = 0.5 / width if spread is None else spread
        self.table = np.random.default_rng([seed, 1]).random((rows, width), np.float32)
        self.table -= 0.5
        self.table *= 2 * self.spread
        self._rows = backends.choose("cpu").rows

    @property
    def outputs(self) -> int:
        """Width of what an example becomes."""
        return self.width * self.per_example

    def forward(self, x, bag_at, ids) -> None:
        """Write x (B, outputs); bag_at: of bags, else None."""
        if bag_at is not None:
            self._rows.gather_mean(x, self.table, bag_at, ids)
        else:
            self._rows.gather(x.reshape(-1, self.width), self.table, ids)

    def backward(self, bag_at, ids, x_grad, scale: float) -> None:
        """Move the rows of the ids against x_grad (B, outputs), by `scale` times the rate."""
        step = -self.rate * scale
        if bag_at is not None:
            if self.undivided:
                x_grad *= np.diff(bag_at)[:, None]
            self._rows.scatter_mean(self.table, bag_at, ids, x_grad, step)
        else:
            self._rows.scatter_add(self.table, ids, x_grad.reshape(-1, self.width), step)

    def parameters(self) -> dict[str, np.ndarray]:
        """The live arrays, by name."""
        return {"table": self.table}

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again."""
        names = ("rows", "width", "per_example", "mean", "undivided", "rate", "spread", "seed")
        return {name: getattr(self, name) for name in names}
