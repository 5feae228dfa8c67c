"""The head of a readout: a full softmax over slots. A frequent class has its own slot; each cluster of classes shares one.

Besides the softmax a step gathers the targets' slots and adds two arrays (B, D): 12 B D bytes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device, softmax
from gpu.runtime import kernels
from gpu.runtime.array import Array

THREADS, EACH = 256, 4  # threads per block; numbers per thread of `add`, as in head.cu


class Work(NamedTuple):
    """Scratch of up to B rows.

    softmax  of gpu/softmax.py
    slots    (B,) int32  the slots of the targets
    grad     (B, D)      the head's part of the gradient
    """

    softmax: softmax.Work
    slots: Array
    grad: Array


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers."""
    empty = device.current().device.empty
    return Work(softmax.workspace(batch, width, dtype), empty(batch, np.int32), empty((batch, width), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """See the contract."""
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
