"""The input table: ids in, the trunk's input out; its rows learn by plain SGD."""

from typing import Any

import numpy as np

from . import backend as backends
from . import mirror


class Embedding:
    """A table of `rows` vectors of `width` numbers.

    per_example  how many ids an example has; their vectors are concatenated (1: the vector itself)
    mean         instead: any number of ids an example (a bag), whose vectors are averaged
    undivided    with mean: every vector of a bag gets the whole gradient of the mean, as in word2vec, not its share
    rate         step of SGD on the sum of the loss over a batch
    spread       rows start uniform in [-spread, spread]; default 0.5 / width, as in word2vec
    backend      where the rows are and move, from hybrid.backend.choose (None: the CPU): a GPU, the trunk's, has its own, and
                 `table` is the host's copy
    """

    def __init__(
        self,
        rows,
        width,
        *,
        per_example=1,
        mean=False,
        undivided=False,
        rate=0.05,
        spread=None,
        seed=0,
        backend=None,
    ):
        for name, value in (("rows", rows), ("width", width), ("per_example", per_example)):
            if value < 1:
                raise ValueError(f"{name}: found {value}, expected at least 1")
        self.rows, self.width, self.per_example, self.mean = rows, width, 1 if mean else per_example, mean
        self.undivided, self.rate, self.seed = undivided, rate, seed
        self.spread = 0.5 / width if spread is None else spread
        self.table = np.random.default_rng([seed, 1]).random((rows, width), np.float32)
        self.table -= 0.5
        self.table *= 2 * self.spread
        self.backend = backend or backends.choose("cpu")
        if undivided and not self.backend.device.shares_host:
            raise ValueError(
                f"undivided: found True with rows on {self.backend.name}, expected False: it is word2vec's, which "
                "has no trunk; leave it out"
            )
        self._table = self.backend.device.from_host(self.table)

    @property
    def outputs(self) -> int:
        """Width of what an example becomes."""
        return self.width * self.per_example

    def forward(self, x, bag_at, ids) -> None:
        """Write x (B, outputs); bag_at: of bags, else None. Arrays of the backend's device, in the work of a queue."""
        if bag_at is not None:
            self.backend.rows.gather_mean(x, self._table, bag_at, ids)
        else:
            self.backend.rows.gather(x.reshape(-1, self.width), self._table, ids)

    def backward(self, bag_at, ids, x_grad, scale: float) -> None:
        """Move the rows of the ids against x_grad (B, outputs), by `scale` times the rate; arrays as in `forward`."""
        step = -self.rate * scale
        if bag_at is not None:
            if self.undivided:
                x_grad *= np.diff(bag_at)[:, None]
            self.backend.rows.scatter_mean(self._table, bag_at, ids, x_grad, step)
        else:
            self.backend.rows.scatter_add(self._table, ids, x_grad.reshape(-1, self.width), step)

    def parameters(self) -> dict[str, np.ndarray]:
        """The rows, by name, as they stand now; on the CPU the live array."""
        mirror.fetch(self.backend.device, self._pairs())
        return {"table": self.table}

    def send(self) -> None:
        """Go on from parameters() as they were filled; nothing to do where the device shares the host's memory."""
        mirror.send(self.backend.device, self._pairs())

    def _pairs(self):
        return [(self.table, self._table)]

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again."""
        names = ("rows", "width", "per_example", "mean", "undivided", "rate", "spread", "seed")
        return {name: getattr(self, name) for name in names}
