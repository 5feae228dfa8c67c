"""Negative sampling: one logistic regression per class separates the target from k drawn classes.

table (V, D) holds one vector per class. Mikolov et al. 2013, arXiv:1310.4546, section 2.2. It trains vectors, not a probability
over the classes.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.runtime.compiled import Array, inlined, launched
from cpu.tree import logistic_rows
from cpu.tree.logistic_rows import OWNERS, by_owner
from cpu.vectors.splitmix import GOLDEN, mix


class Alias(NamedTuple):
    """A distribution over V classes that is sampled in constant time (Walker 1977): keep v, or take other[v].

    keep   (V,) float64  the probability of keeping class v once it is picked
    other  (V,) int32
    """

    keep: np.ndarray
    other: np.ndarray


def alias(counts: Array) -> Alias:
    """Returns a sampler that draws class v in proportion to counts[v]; counts (V,) >= 0, not all 0."""
    weights = np.asarray(counts, np.float64)
    keep = weights * (weights.size / weights.sum())
    other = np.arange(keep.size, dtype=np.int32)
    _pair(keep, other)
    return Alias(keep, other)


def draw(negatives: Array, alias: Alias, seed: int, tick: int) -> None:
    """Fills negatives (B, k) int32 with classes: a function of seed and tick, for any number of threads."""
    key = np.uint64(seed % 2**64), np.uint64(tick % 2**64)
    _draw(negatives, alias.keep, alias.other, *key, numba.get_num_threads())


def workspace(batch: int, width: int, count: int, dtype: DTypeLike) -> logistic_rows.Work:
    """Allocates scratch for calls of `step` with up to `batch` rows and `count` negatives each."""
    return logistic_rows.workspace(batch, width, count + 1, dtype)


def step(
    grad: Array, loss: Array, learned: Any, work: logistic_rows.Work, hidden: Array, target: Array, negatives: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step: writes grad (B, D) = d loss / d hidden and loss (B,) in nats, updates the rows (V, D).

    loss = -log p(yes | target) - sum log p(no | negative). Negatives (B, k) int32 that equal the target or repeat within an
    example are skipped. target (B,) int32. Equals the serial loop over examples bit for bit.
    """
    _enter(work.entries, work.cuts, target, negatives, numba.get_num_threads())
    logistic_rows.learn(grad, loss, learned, work, hidden, weight, rate)


@launched()
def _pair(keep, other):
    """Tops up each class with too little probability from one with too much (Vose 1991)."""
    poor = np.empty(keep.size, np.int32)
    rich = np.empty(keep.size, np.int32)
    poors = riches = 0
    for v in range(keep.size):
        if keep[v] < 1:
            poor[poors] = v
            poors += 1
        else:
            rich[riches] = v
            riches += 1
    while poors and riches:
        v = poor[poors - 1]
        giver = rich[riches - 1]
        other[v] = giver
        keep[giver] -= 1 - keep[v]
        if keep[giver] < 1:
            riches -= 1
            poor[poors - 1] = giver
        else:
            poors -= 1
    for i in range(poors):  # only rounding is left
        keep[poor[i]] = 1


@launched(parallel=True)
def _draw(negatives, keep, other, seed, tick, threads):
    """Draws negatives; number (b, i) is a function of seed, tick and its position alone."""
    batch, count = negatives.shape
    start = mix(mix(seed + GOLDEN) ^ tick)
    for thread in numba.prange(threads):
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            for i in range(count):
                negatives[b, i] = _drawn(keep, other, start, b * count + i)


@launched(parallel=True)
def _enter(entries, cuts, target, negatives, threads):
    """Writes each example's classes, sorted by owner, with turn 1 for the target."""
    batch, count = negatives.shape
    for thread in numba.prange(threads):
        listed = np.empty(count + 1, np.int32)
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            listed[0], n = 2 * target[b] + 1, 1
            for i in range(count):
                v = negatives[b, i]
                if v != target[b] and not _met(listed, n, v):
                    listed[n] = 2 * v
                    n += 1
            by_owner(entries, cuts, b, listed, n)


@launched()
def enter_runs(entries, cuts, keep, other, target, count, seed, tick):
    """Enters the classes of the first example of each run of one target, the target first, with one owner. The run's other
    examples get its first entry, which identifies the run. Negative i of example b is drawn as in `draw`."""
    start = mix(mix(seed + GOLDEN) ^ tick)
    for b in range(target.size):
        entries[b, 0] = 2 * target[b] + 1
        if b == 0 or target[b] != target[b - 1]:
            n, listed = 1, entries[b]
            for i in range(count):
                v = _drawn(keep, other, start, b * count + i)
                if v != target[b] and not _met(listed, n, v):
                    entries[b, n] = 2 * v
                    n += 1
            cuts[b, 0] = 0
            for owner in range(1, OWNERS + 1):
                cuts[b, owner] = n


@inlined()
def _drawn(keep, other, start, number):
    """Returns one class of the distribution."""
    bits = mix(start + np.uint64(number + 1) * GOLDEN)
    coin = (mix(bits + GOLDEN) >> np.uint64(11)) * 2.0**-53
    v = int((bits >> np.uint64(11)) * 2.0**-53 * keep.size)
    stays, instead = keep[v], other[v]  # loads both: the branch is unpredictable
    return v if coin < stays else instead


@inlined()
def _met(listed, count, v):
    """True if class v is among the first `count` entries after the target."""
    for i in range(1, count):
        if listed[i] >> 1 == v:
            return True
    return False
