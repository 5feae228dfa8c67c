"""The input table: ids in, the trunk's input out; its rows learn by plain SGD."""

from typing import Any

import numpy as np

from .slot import Slot


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

    @property
    def outputs(self) -> int:
        """Width of what an example becomes."""
        return self.width * self.per_example

    def forward(self, kernels, slot: Slot) -> None:
        """Write slot.x (B, outputs) from slot.ids."""
        if slot.bag_at is not None:
            kernels.gather_mean(slot.x, self.table, slot.bag_at, slot.ids)
        else:
            kernels.gather(slot.x.reshape(-1, self.width), self.table, slot.ids)

    def backward(self, kernels, slot: Slot, scale: float) -> None:
        """Move the rows of slot.ids against slot.x_grad (B, outputs), by `scale` times the rate."""
        step = -self.rate * scale
        if slot.bag_at is not None:
            if self.undivided:
                slot.x_grad *= np.diff(slot.bag_at)[:, None]
            kernels.scatter_mean(self.table, slot.bag_at, slot.ids, slot.x_grad, step)
        else:
            kernels.scatter_add(self.table, slot.ids, slot.x_grad.reshape(-1, self.width), step)

    def parameters(self) -> dict[str, np.ndarray]:
        """The live arrays, by name."""
        return {"table": self.table}

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again."""
        names = ("rows", "width", "per_example", "mean", "undivided", "rate", "spread", "seed")
        return {name: getattr(self, name) for name in names}
