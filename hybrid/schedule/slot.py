"""Slots: the buffers of one micro-batch, allocated before the first step, and their life cycle."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

FREE, FILLING, READY, IN_USE = "free", "filling", "ready", "in use"
NEXT = {FREE: FILLING, FILLING: READY, READY: IN_USE, IN_USE: FREE}


class SlotState:
    """The life cycle of a slot: free, filling, ready, in use, and free again, always in this order.

    Any other transition, such as filling it while in use, raises RuntimeError with the slot and both states.

    tick, micro  the batch and micro-batch that it holds; count: the number of its examples
    examples     of the whole batch: their number, or the sum of their weights; divides batch sums into means
    loss         mean over these examples of loss times weight, in nats, once written by a stage
    events       of its stages, by name
    """

    def __init__(self) -> None:
        self.state = FREE
        self.micro = 0
        self.tick = -1
        self.count = 0  # examples in this slot
        self.examples: float = 0
        self.loss = 0.0
        self.events: dict[str, Any] = {}

    @contextlib.contextmanager
    def _filling(self) -> Iterator[None]:
        """A context that fills a free slot; on failure the slot is free again."""
        self._become(FILLING)
        try:
            yield
        except BaseException:
            self.state = FREE
            raise
        self._become(READY)

    def take(self) -> None:
        """Marks a ready slot as in use."""
        self._become(IN_USE)

    def release(self) -> None:
        """Frees the slot for refilling."""
        self._become(FREE)

    def _become(self, state: str) -> None:
        if NEXT[self.state] != state:
            slot = f"slot of tick {self.tick}, micro-batch {self.micro}"
            raise RuntimeError(f"{slot}: found {self.state}, cannot become {state}")
        self.state = state


class Slot(SlotState):
    """The arrays of a micro-batch of up to `rows` examples, `ids` input ids and `targets` targets.

    `fill` writes `ids` or `x`, and `target`; also `bag_at`, `values`, `weight` and `target_at`, or None if the batch lacks
    them. The stages write the float32 arrays that exist:

        x, hidden, grad, x_grad         (rows, width) on the host; page-locked if the device has its own memory
        x_dev, hidden_dev, ...          on the device; the same arrays if it shares the host's memory
        inner0_dev, inner0_grad_dev     (rows, width) on the device only: kept by a trunk from forward to backward
        ids_dev, bag_at_dev, values_dev if rows are on the device; x and x_grad are then on the device only
        target_dev, weight_dev, losses, losses_dev  (rows,) if the readout is on the device; hidden and grad may then be
                                        there only

    widths    numbers per row of its float32 arrays, by name
    device    of the dense stages
    bags      True if examples have bags of ids
    crossing  names of arrays on both host and device, some of these, or of ids, bag_at, values, target, weight and losses;
              the rest of `widths` is on the device only. None: all of `widths`
    same      name -> name of another array whose buffer it shares
    scale     tick -> schedule factor of all rates; a filled slot has the number as `scale`
    targets   None: one per example
    learns    False for a query: no training, hence no dropout (set by Route.slot)

    Each name is a view of the first `count` rows of its buffer, so stages never see rows of an earlier batch.
    """

    ids: np.ndarray
    bag_at: np.ndarray | None = None
    bag_at_dev: Any = None
    values: np.ndarray | None = None
    values_dev: Any = None
    target: np.ndarray
    target_at: np.ndarray | None = None
    weight: np.ndarray | None = None
    weight_dev: Any = None
    x: np.ndarray
    hidden: np.ndarray
    grad: np.ndarray
    x_grad: np.ndarray
    x_dev: Any
    hidden_dev: Any
    grad_dev: Any
    x_grad_dev: Any = None  # None if unused
    target_dev: Any
    losses: np.ndarray
    losses_dev: Any

    def __init__(
        self,
        rows: int,
        ids: int,
        widths: Mapping[str, int],
        device: Any,
        *,
        bags: bool = False,
        crossing: Collection[str] | None = None,
        same: Mapping[str, str] | None = None,
        scale: Callable[[int], float] = lambda tick: 1.0,
        targets: int | None = None,
        learns: bool = True,
    ):
        super().__init__()
        self._scale, self.scale, self.learns = scale, 1.0, learns
        sizes: dict[str, tuple[int, type]] = {"ids": (ids, np.int32), "target": (targets or rows, np.int32)}
        sizes |= {"weight": (rows, np.float32), "target_at": (rows + 1, np.int64)}
        sizes |= {"bag_at": (rows + 1, np.int64), "values": (ids, np.float32)} if bags else {}
        both = widths if crossing is None else crossing
        sizes |= {"losses": (rows, np.float32)} if "losses" in both else {}
        host: dict[str, np.ndarray] = {}
        host |= {name: (device.host_empty if name in both else np.empty)(*size) for name, size in sizes.items()}
        host |= {name: device.host_empty((rows, widths[name]), np.float32) for name in widths if name in both}
        there = {name: device.mirror(host[name]) for name in both}
        there |= {name: device.empty((rows, widths[name]), np.float32) for name in widths if name not in both}
        host |= {name: host[other] for name, other in (same or {}).items()}
        self._buffers = host | {f"{name}_dev": buffer for name, buffer in there.items()}

    def fill(self, tick: int, micro: int, batch: Any, first: int, last: int) -> None:
        """Copies the examples first..last of a feed's Batch into a free slot."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro, self.count = tick, micro, last - first
            self.scale = self._scale(tick)
            # Divisor of batch sums: 1 if all weights are 0, since the sums are then 0 too.
            self.examples = batch.total() or float(batch.examples > 0)
            parts = _parts(batch, first, last)
            lengths = {name: len(part) for name, part in parts.items() if part is not None}
            for name, buffer in self._buffers.items():
                array = name.removesuffix("_dev")
                left_out = array in parts and array not in lengths
                setattr(self, name, None if left_out else buffer[: lengths.get(array, self.count)])
            for name, part in parts.items():
                if part is not None:
                    getattr(self, name)[:] = part


def _parts(batch: Any, first: int, last: int) -> dict[str, np.ndarray | None]:
    """Returns a slot's arrays of the examples first..last, by name; None: absent from the batch."""
    targets, target_at = _span(batch.target_at, first, last)
    weight = None if batch.weight is None else batch.weight[first:last]
    parts = {"target": batch.target[targets], "target_at": target_at, "weight": weight}
    if batch.ids is None:
        return parts if batch.x is None else parts | {"x": batch.x[first:last]}
    ids, bag_at = _span(batch.bag_at, first, last)
    if bag_at is None:
        each = len(batch.ids) // max(batch.examples, 1)
        ids = slice(first * each, last * each)
    values = None if batch.values is None else batch.values[ids]
    return parts | {"ids": batch.ids[ids], "bag_at": bag_at, "values": values}


def _span(at: np.ndarray | None, first: int, last: int) -> tuple[slice, np.ndarray | None]:
    """Returns the slice of the entries of some examples, and offsets within it; at None: one entry per example."""
    if at is None:
        return slice(first, last), None
    return slice(int(at[first]), int(at[last])), at[first : last + 1] - at[first]
