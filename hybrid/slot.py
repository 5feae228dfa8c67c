"""The buffers of one micro-batch under way, all allocated before the first tick."""

import numpy as np


class Slot:
    """One micro-batch of up to `rows` examples and `ids` input ids.

    Filled by `fill`: `ids`, `bag_at` (None: as many ids for every example), `target`. Written by the stages:
    x (rows, inputs), inner (rows, trunk's hidden), hidden (rows, width), their gradients, loss.
    sizes gives the width of each of these that exists; `same` names those that are another one's buffer.
    The names are views of the first `count` rows of their buffers, so a stage never sees rows of an earlier batch.
    """

    ids: np.ndarray
    bag_at: np.ndarray | None
    target: np.ndarray
    x: np.ndarray
    inner: np.ndarray
    inner_grad: np.ndarray
    hidden: np.ndarray
    grad: np.ndarray
    x_grad: np.ndarray

    def __init__(self, rows: int, ids: int, sizes: dict[str, int], bags: bool, same: dict[str, str] | None = None):
        self._ids = np.empty(ids, np.int32)
        self._bag_at = np.empty(rows + 1, np.int64) if bags else None
        self._target = np.empty(rows, np.int32)
        self._buffers = {name: np.empty((rows, size), np.float32) for name, size in sizes.items()}
        self._buffers |= {name: self._buffers[other] for name, other in (same or {}).items()}
        self.micro = 0
        self.tick = -1
        self.count = 0  # examples here
        self.examples = 0  # examples in the whole batch
        self.loss = 0.0
        self.events: dict = {}

    def fill(self, tick: int, micro: int, batch, first: int, last: int) -> None:
        """Take the examples first..last of a batch: copies, so the feed may reuse its arrays."""
        self.tick, self.micro, self.count = tick, micro, last - first
        self.examples = examples = len(batch.target)
        if self._bag_at is None:
            each = len(batch.ids) // max(examples, 1)
            begin, end = first * each, last * each
            self.bag_at = None
        else:
            begin, end = batch.bag_at[first], batch.bag_at[last]
            self.bag_at = self._bag_at[: self.count + 1]
            np.subtract(batch.bag_at[first : last + 1], begin, out=self.bag_at)
        self.ids = self._ids[: end - begin]
        self.ids[:] = batch.ids[begin:end]
        self.target = self._target[: self.count]
        self.target[:] = batch.target[first:last]
        for name, buffer in self._buffers.items():
            setattr(self, name, buffer[: self.count])
