"""The head of a readout: a full softmax over slots. A frequent class has its own slot; each cluster of classes shares one.

A step of a full softmax over V classes takes the time of V rows per example. A head of H classes and K clusters takes the time
of H + K rows. If the target is in a cluster, a step also takes as many rows as the cluster has classes, times the probability,
by the counts, that an example leaves the head.

If class v is to have the log-probability c_v . h, up to a constant over all classes and higher orders in h, a slot gets the
mean of c over its classes, weighted by class counts, and a row of a cluster its c_v. Biases make all classes equally likely at
h = 0.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import softmax
from cpu.output.cluster_softmax import Plan
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
    np.add(grad, part, out=grad)


def log_prob(out: Array, learned: Any, work: Work, slot: Array, hidden: Array, target: Array) -> None:
    """out[b] = log p(the slot of target[b] | hidden[b])."""
    slots = work.slots[: len(hidden)]
    np.take(slot, target, out=slots)
    softmax.log_prob(out, learned, work.softmax, hidden, slots)


def spread(out: Array, slots: Array, slot: Array) -> None:
    """out[b, v] += slots[b, slot[v]]; out (B, V), slots (B, H + K) the log-probability of each slot."""
    _spread(out, slots, slot, numba.get_num_threads())


@launched(parallel=True)
def _spread(out, slots, slot, threads):
    for thread in numba.prange(threads):
        for b in range(thread * out.shape[0] // threads, (thread + 1) * out.shape[0] // threads):
            for v in range(out.shape[1]):
                out[b, v] += slots[b, slot[v]]


# Its size, and its first weights by vectors of the classes.


def choose(counts: Array, share: float, alone: int | None, clusters: int | None) -> tuple[int, int]:
    """Chooses H and K unless given: the largest H whose step takes at most `share` of a full softmax's time.

    If none does, H minimises the time of a step. K is the root of the number of remaining classes, so that there are about as
    many clusters as classes in one.
    """
    classes = counts.size
    heads = np.arange(classes + 1) if alone is None else np.array([alone])
    left = classes - heads
    many = np.sqrt(left).round().astype(np.int64) if clusters is None else np.full(heads.size, clusters)
    fitting = (many <= left) & ((many > 0) | (left == 0))  # without clusters all classes are alone
    heads, many = heads[fitting], np.where(left[fitting], many[fitting], 0)
    rows = cost(counts, heads, many)
    cheap = np.flatnonzero(rows <= share * classes)
    best = cheap[-1] if cheap.size else rows.argmin()
    return int(heads[best]), int(many[best])


def cost(counts: Array, alone: Array, clusters: Array) -> Array:
    """Returns the time of a step per example, in rows of a full softmax, (N,) float64.

    counts           (V,), the frequency of each class
    alone, clusters  (N,) whole numbers: H and K; the most frequent classes are alone, and clusters are about equally likely
    """
    met = np.sort(counts if counts.any() else np.ones(counts.size))[::-1]
    p = met / met.sum()
    away = np.append(np.cumsum(p[::-1])[::-1], 0)[alone]
    return alone + clusters.astype(float) + away * (counts.size - alone) / np.maximum(clusters, 1)


def begin(head: Any, tail: Any, alone: int, vectors: Array, plan: Plan, masses: Array) -> None:
    """Writes the rows and biases of the clusters' slots, and of the classes in clusters.

    head, tail: Learned; vectors (V, D) float32; masses (V,) above 0, class frequencies
    """
    among, clusters = plan.cluster[plan.classes], len(plan.begins) - 1
    share = masses[plan.classes] / np.bincount(among, masses[plan.classes], clusters)[among]
    tail.rows[:] = vectors[plan.classes]
    head.rows[alone:] = 0
    np.add.at(head.rows[alone:], among, (share[:, None] * tail.rows).astype(np.float32))
    if tail.biases is not None and clusters:
        tail.biases[:] = 0
        head.biases[alone:] = np.logaddexp.reduceat(np.zeros(len(tail.biases)), plan.begins[:-1])
