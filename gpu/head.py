"""The head of a readout: a full softmax over slots; a frequent class has one alone, a cluster of classes has one together.

Beside the softmax a step gathers the slots of the targets, and adds two arrays (B, D): 12 B D bytes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device, softmax
from gpu.runtime import kernels
from gpu.runtime.array import Array

THREADS, EACH = 256, 4  # of a block; numbers of a thread of `add`, as in head.cu


class Work(NamedTuple):
    """Scratch of up to B rows.

    softmax  of gpu/softmax.py
    slots    (B,) int32  the slots of the targets
    grad     (B, D)      what the head adds to the gradient
    """

    softmax: softmax.Work
    slots: Array
    grad: Array


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` rows of `width` numbers."""
    empty = device.current().device.empty
    return Work(softmax.workspace(batch, width, dtype), empty(batch, np.int32), empty((batch, width), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move the rows of the slots.

    slot (V,) int32: that of each class. Rows move once, against the gradient summed over B.
    """
    part = work.grad[: len(hidden)]
    softmax.step(part, loss, learned, work.softmax, hidden, _slots(work, slot, target), weight, rate)
    add(grad, part)


def log_prob(out: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array) -> None:
    """out[b] = log p(the slot of target[b] | hidden[b])."""
    softmax.log_prob(out, learned, work.softmax, hidden, _slots(work, slot, target))


def add(out: Array, part: Array) -> None:
    """out += part; of one shape, C-contiguous."""
    kernels.launch(__file__, "add", "PPq", -(-out.size // (EACH * THREADS)), THREADS, out, part, out.size)


def _slots(work: Work, slot: Array, target: Array) -> Array:
    slots, rows = work.slots[: len(target)], len(target)
    kernels.launch(__file__, "look_up", "PPPi", -(-rows // THREADS), THREADS, slots, slot, target, rows)
    return slots
