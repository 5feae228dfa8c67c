"""The buffers of one micro-batch under way, all allocated before the first tick."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .slot_state import SlotState


class Slot(SlotState):
    """One micro-batch of up to `rows` examples and `ids` input ids.

    `fill` writes `ids`, `bag_at` (None: every example has as many ids) and `target`. The stages write, in float32, those of
    these arrays that there are:

        x, hidden, grad, x_grad         (rows, width) on the host; page-locked where the device has memory of its own
        x_dev, hidden_dev, ...          on the device; the same arrays where it shares the host's memory
        inner_dev, inner_grad_dev, ...  (rows, width) on the device only: what a trunk keeps from forward to backward
        ids_dev, bag_at_dev             where rows are on the device; x and x_grad are then on the device only
        target_dev, losses, losses_dev  (rows,) where the readout is on the device; hidden and grad may then be there only

    crossing  name -> width of the arrays that are on the host and on the device
    kept      name -> width of the arrays that are on the device only
    same      name -> name of another array whose buffer it shares
    lists     those of ids, bag_at, target and losses that are on both
    device    where the dense stages run
    scale     tick -> by how much all rates are scaled in it; a filled slot has the number as `scale`

    learns    False for a question: nothing learns from it, so nothing is dropped (Route.slot says)

    Each name is a view of the first `count` rows of its buffer, so a stage never sees rows of an earlier batch.
    """

    learns = True
    ids: np.ndarray
    ids_dev: Any
    bag_at: np.ndarray | None = None
    bag_at_dev: Any = None
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
        self,
        rows: int,
        ids: int,
        crossing: dict[str, int],
        bags: bool,
        device: Any,
        kept: dict[str, int] | None = None,
        same: dict[str, str] | None = None,
        lists: Iterable[str] = (),
        scale: Callable[[int], float] = lambda tick: 1.0,
    ):
        super().__init__()
        self._scale, self.scale = scale, 1.0
        sizes: dict[str, tuple[int, type]] = {"ids": (ids, np.int32), "target": (rows, np.int32)}
        sizes |= {"bag_at": (rows + 1, np.int64)} if bags else {}
        sizes |= {"losses": (rows, np.float32)} if "losses" in lists else {}
        host: dict[str, np.ndarray] = {}
        host |= {name: (device.host_empty if name in lists else np.empty)(*size) for name, size in sizes.items()}
        host |= {name: device.host_empty((rows, size), np.float32) for name, size in crossing.items()}
        there = {name: device.mirror(host[name]) for name in (*crossing, *lists)}
        there |= {name: device.empty((rows, size), np.float32) for name, size in (kept or {}).items()}
        host |= {name: host[other] for name, other in (same or {}).items()}
        self._buffers = host | {f"{name}_dev": buffer for name, buffer in there.items()}
        self.examples = 0  # examples in the whole batch

    def fill(self, tick: int, micro: int, batch: Any, first: int, last: int) -> None:
        """Take the examples first..last of a batch into a free slot: copies, so the feed may reuse its arrays."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro, self.count = tick, micro, last - first
            self.scale = self._scale(tick)
            self.examples = examples = len(batch.target)
            bags = "bag_at" in self._buffers
            each = 0 if bags else len(batch.ids) // max(examples, 1)
            begin, end = (batch.bag_at[first], batch.bag_at[last]) if bags else (first * each, last * each)
            lengths = {"ids": end - begin, "bag_at": self.count + 1}
            for name, buffer in self._buffers.items():
                setattr(self, name, buffer[: lengths.get(name.removesuffix("_dev"), self.count)])
            self.ids[:] = batch.ids[begin:end]
            self.target[:] = batch.target[first:last]
            if bags:
                np.subtract(batch.bag_at[first : last + 1], begin, out=self.bag_at)
