"""The head of a readout: a full softmax over slots. A frequent class has its own slot; each cluster of classes shares one."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device, rows, softmax
from gpu.runtime.array import Array


class Work(NamedTuple):
    """Scratch of up to B rows.

    softmax  of gpu/softmax.py
    slots    (B,) int32  the slots of the targets
    """

    softmax: softmax.Work
    slots: Array


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers."""
    return Work(softmax.workspace(batch, width, dtype), device.current().device.empty(batch, np.int32))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """See the contract."""
    softmax.add_step(grad, loss, learned, work.softmax, hidden, _slots(work, slot, target), weight, rate)


def log_prob(out: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array) -> None:
    """out[b] = log p(the slot of target[b] | hidden[b])."""
    softmax.log_prob(out, learned, work.softmax, hidden, _slots(work, slot, target))


def _slots(work: Work, slot: Array, target: Array) -> Array:
    slots = work.slots[: len(target)]
    rows.gather(slots.reshape(-1, 1), slot.reshape(-1, 1), target)
    return slots
