"""A slot: the buffers of one micro-batch, all allocated before the first tick, and what may be done with them when."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

FREE, FILLING, READY, IN_USE = "free", "filling", "ready", "in use"
NEXT = {FREE: FILLING, FILLING: READY, READY: IN_USE, IN_USE: FREE}


class SlotState:
    """A slot is free, filling, ready, in use, and free again, always in this order.

    Raises RuntimeError, naming the slot and both states, for anything else, such as filling it while its work is under way.

    tick, micro  the batch and the micro-batch that it holds; count: how many examples are here
    final        whether the batch's last example is here
    examples     of the whole batch: how many, or the sum of their weights; by it sums over the batch become means
    loss         the mean in nats over the examples here of loss times weight, once a stage has written it
    events       of its stages, by name
    """

    def __init__(self) -> None:
        self.state = FREE
        self.micro = 0
        self.tick = -1
        self.count = 0  # examples here
        self.final = False
        self.examples: float = 0
        self.loss = 0.0
        self.events: dict[str, Any] = {}

    @contextlib.contextmanager
    def _filling(self) -> Iterator[None]:
        """A context in which a free slot is filled; where that fails it is free again."""
        self._become(FILLING)
        try:
            yield
        except BaseException:
            self.state = FREE
            raise
        self._become(READY)

    def take(self) -> None:
        """Begin to work on a slot that is ready."""
        self._become(IN_USE)

    def release(self) -> None:
        """The work on it is done: it may be filled again."""
        self._become(FREE)

    def _become(self, state: str) -> None:
        if NEXT[self.state] != state:
            raise RuntimeError(
                f"slot of tick {self.tick}, micro-batch {self.micro}: found {self.state}, cannot become {state}"
            )
        self.state = state


class Slot(SlotState):
    """One micro-batch of up to `rows` examples, `ids` input ids and `targets` targets.

    `fill` writes `ids` or `x`, and `target`; `bag_at`, `values`, `weight` and `target_at` where the batch has them, and else
    they are None. The stages write, in float32, those of these arrays that there are:

        x, hidden, grad, x_grad         (rows, width) on the host; page-locked where the device has memory of its own
        x_dev, hidden_dev, ...          on the device; the same arrays where it shares the host's memory
        inner_dev, inner_grad_dev, ...  (rows, width) on the device only: what a trunk keeps from forward to backward
        ids_dev, bag_at_dev, values_dev where rows are on the device; x and x_grad are then on the device only
        target_dev, weight_dev, losses, losses_dev  (rows,) where the readout is on the device; hidden and grad may then be
                                        there only

    widths    numbers a row of its float32 arrays, by name
    device    where the dense stages run
    bags      whether examples have bags of ids
    crossing  names of the arrays that are on the host and on the device, some of these, or of ids, bag_at, values, target,
              weight and losses; the others of `widths` are on the device only. None: all of `widths`
    same      name -> name of another array whose buffer it shares
    scale     tick -> schedule factor of all rates; a filled slot has the number as `scale`
    targets   None: one an example
    learns    False for a question: nothing learns from it, so nothing is dropped (Route.slot says)
    unlabelled  whether examples without a target count in `examples`, see Readout.counts_unlabelled

    Each name is a view of the first `count` rows of its buffer, so a stage never sees rows of an earlier batch.
    """

    ids: np.ndarray
    ids_dev: Any
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
    x_grad_dev: Any = None  # where nothing reads it
    inner_dev: Any
    inner_grad_dev: Any
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
        unlabelled: bool = False,
    ):
        super().__init__()
        self._scale, self.scale, self.learns, self._unlabelled = scale, 1.0, learns, unlabelled
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
        """Copy the examples first..last of a Batch of a feed into a free slot."""
        with self._filling():
            self.events.clear()
            self.tick, self.micro, self.count = tick, micro, last - first
            self.final = first < last == batch.examples
            self.scale = self._scale(tick)
            # Sums are divided by it: 1 where all weights are 0, since the sums are 0 then too.
            self.examples = batch.total(self._unlabelled) or float(batch.examples > 0)
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
    """What a slot takes of the examples first..last, by name; None: the batch has no such array."""
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
    """Where the entries of some examples lie, and where each example's begin among them; at None: one an example."""
    if at is None:
        return slice(first, last), None
    return slice(int(at[first]), int(at[last])), at[first : last + 1] - at[first]
