"""The buffers of one micro-batch under way, all allocated before the first tick, and what may be done with them when."""

from typing import Any

import numpy as np

from .turns import FILLING, READY, Turns


class Slot(Turns):
    """One micro-batch of up to `rows` examples and `ids` input ids.

    Filled by `fill`: `ids`, `bag_at` (None: as many ids for every example), `target`. Written by the stages, as far as there
    is such an array, float32:

        x, hidden, grad, x_grad      (rows, width) on the host, page-locked where the device is another; and the same
        x_dev, hidden_dev, ...       on the device: the same arrays where it shares the host's memory
        inner_dev, inner_grad_dev    (rows, trunk's hidden) on the device only
        target_dev, losses, losses_dev  (rows,) for a readout on the device; hidden and grad may then be there only

    crossing, kept  the widths of the arrays of the first kind, and of those that stay on the device
    same            names of arrays that are another one's buffer
    beside          whether a readout, or a part of it, is on the device: then targets (int32) and losses cross
    device          where the dense stages run

    The names are views of the first `count` rows of their buffers, so a stage never sees rows of an earlier batch.
    """

    ids: np.ndarray
    bag_at: np.ndarray | None
    target: np.ndarray
    x: np.ndarray
    hidden: np.ndarray
    grad: np.ndarray
    x_grad: np.ndarray
    x_dev: Any
    hidden_dev: Any
    grad_dev: Any
    x_grad_dev: Any
    inner_dev: Any
    inner_grad_dev: Any
    target_dev: Any
    losses: np.ndarray
    losses_dev: Any

    def __init__(
        self, rows: int, ids: int, crossing: dict[str, int], bags: bool, device, kept=None, same=None, beside=False
    ):
        super().__init__()
        self._ids = np.empty(ids, np.int32)
        self._bag_at = np.empty(rows + 1, np.int64) if bags else None
        self._target = device.host_empty(rows, np.int32) if beside else np.empty(rows, np.int32)
        buffers = {name: device.host_empty((rows, size), np.float32) for name, size in crossing.items()}
        if beside:
            buffers |= {"target": self._target, "losses": device.host_empty(rows, np.float32)}
        there = {name: device.mirror(buffer) for name, buffer in buffers.items()}
        there |= {name: device.empty((rows, size), np.float32) for name, size in (kept or {}).items()}
        buffers |= {name: buffers[other] for name, other in (same or {}).items()}
        self._buffers = buffers | {f"{name}_dev": buffer for name, buffer in there.items()}
        self.examples = 0  # examples in the whole batch

    def fill(self, tick: int, micro: int, batch, first: int, last: int) -> None:
        """Take the examples first..last of a batch into a free slot: copies, so the feed may reuse its arrays."""
        self._become(FILLING)
        self.events.clear()
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
        self._become(READY)
