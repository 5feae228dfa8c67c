"""The head of a readout: a full softmax over slots. A frequent class has its own slot; each cluster of classes shares one."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import softmax
from cpu.runtime.compiled import Array, launched


class Work(NamedTuple):
    """Scratch of up to B rows.

    softmax  of cpu/softmax.py
    slots    (B,) int32  the slots of the targets
    grad     (B, D)      the head's part of the gradient
    """

    softmax: softmax.Work
    slots: np.ndarray
    grad: np.ndarray


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers."""
    return Work(softmax.workspace(batch, width, dtype), np.empty(batch, np.int32), np.empty((batch, width), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step: adds to grad (B, D), writes loss (B,), updates each slot's row once. See the contract."""
    part, slots = work.grad[: len(hidden)], work.slots[: len(hidden)]
    np.take(slot, target, out=slots)
    softmax.step(part, loss, learned, work.softmax, hidden, slots, weight, rate)
    add(grad, part)


def log_prob(out: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array) -> None:
    """out[b] = log p(the slot of target[b] | hidden[b])."""
    slots = work.slots[: len(hidden)]
    np.take(slot, target, out=slots)
    softmax.log_prob(out, learned, work.softmax, hidden, slots)


def add(out: Array, part: Array) -> None:
    """out += part; of one shape, C-contiguous."""
    np.add(out, part, out=out)


def spread(out: Array, slots: Array, slot: Array) -> None:
    """out[b, v] += slots[b, slot[v]]; out (B, V), slots (B, H + K) the log-probability of each slot."""
    _spread(out, slots, slot, numba.get_num_threads())


@launched(parallel=True)
def _spread(out, slots, slot, threads):
    for thread in numba.prange(threads):
        for b in range(thread * out.shape[0] // threads, (thread + 1) * out.shape[0] // threads):
            for v in range(out.shape[1]):
                out[b, v] += slots[b, slot[v]]
