"""Classes whose vectors are alike, side by side: repeated 2-means over unit vectors -> parts of equal size, or a binary tree.

A segment of classes is put in order along the difference of two centres, and cut. The two sides have new centres, which give a
new order, a few times. As in Prabhu et al. 2018, "Parabel: Partitioned Label Trees for Extreme Classification with Application
to Dynamic Search Advertising", where the cut is in the middle; the others follow Baharav et al. 2021, "Enabling
Efficiency-Precision Trade-offs for Label Trees in Extreme Classification", in weighing likeness against the length of codes.

One thread splits a segment, in an order that only the segment knows: the same bits at any number of threads. A vector of zeros
is like no other, and of equal vectors the lower class comes first; where all are equal, the cut is in the middle.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.splitmix import GOLDEN, mix

ROUNDS = 8  # of 2-means, at most; most segments stand still after four or five
SAMPLE = 16384  # of a larger segment the centres are those of about so many classes, evenly spread
NO_MASSES, DEEP = np.empty(0), 62  # where every cut is in the middle


class Cuts(NamedTuple):
    """How the splits of a tree are cut.

    masses   (V,) above 0: how often each class is met
    quality  1: between the most unlike classes along the order. 0: where both sides are met equally often, which makes paths
             short. Between: where quality * (share of the variance along the order that the cut explains) + (1 - quality) *
             (bits that the turn tells) is greatest
    depth    most nodes on a path
    """

    masses: np.ndarray
    quality: float
    depth: int


def equal(vectors: ArrayLike, parts: int, *, seed: int = 0) -> Array:
    """The part, 0 to `parts`, of each class: (V,) int32; sizes differ by 1 at most, and neighbouring parts are alike.

    vectors  (V, D): one a class, of which only the directions count
    parts    1 to V

    It costs O(V D log parts). Which of all divisions is found depends on `seed`, and on nothing else.
    """
    unit = _unit(vectors)
    classes = len(unit)
    order, part = np.arange(classes, dtype=np.int32), np.empty(classes, np.int32)
    at = np.arange(parts + 1) * classes // parts
    first, last = np.array([0]), np.array([parts])
    while (last - first > 1).any():
        middle = (first + last) // 2
        wide = last - first > 1
        begin, end, cut = at[first[wide]], at[last[wide]], at[middle[wide]]
        _split(order, unit, begin, end, cut, _seeds(seed, begin, end), NO_MASSES, 1.0, classes)
        first, last = np.sort(np.concatenate([first, middle[wide]])), np.sort(np.concatenate([last, middle[wide]]))
    part[order] = np.repeat(np.arange(parts, dtype=np.int32), np.diff(at))
    return part


def binary(vectors: ArrayLike, cuts: Cuts | None = None, *, seed: int = 0) -> tuple[Array, Array]:
    """A tree over V >= 2 classes: leaf_up and node_up of `cpu.tree.tree.Tree`, numbered breadth first.

    cuts  None: every segment is cut in the middle, and all paths are about log2 V long
    """
    unit = _unit(vectors)
    order = np.arange(len(unit), dtype=np.int32)
    leaf_up, node_up = np.empty(len(unit), np.int32), np.empty(len(unit) - 1, np.int32)
    begin, end, up = np.array([0]), np.array([len(unit)]), np.array([-1], np.int32)
    masses, quality, depth = cuts or Cuts(NO_MASSES, 1.0, DEEP)
    level = node = 0
    while begin.size:
        cut = (begin + end + 1) // 2
        widest = min(2 ** max(depth - level - 1, 0), len(unit))
        _split(order, unit, begin, end, cut, _seeds(seed, begin, end), masses, quality, widest)
        numbers = np.arange(node, node + begin.size, dtype=np.int32)
        node_up[numbers] = up
        up = np.ravel(np.column_stack([2 * numbers, 2 * numbers + 1]))
        begin, end = np.ravel(np.column_stack([begin, cut])), np.ravel(np.column_stack([cut, end]))
        leaf = end - begin == 1
        leaf_up[order[begin[leaf]]] = up[leaf]
        begin, end, up = begin[~leaf], end[~leaf], up[~leaf]
        level, node = level + 1, node + numbers.size
    return leaf_up, node_up


def _unit(vectors: ArrayLike) -> Array:
    """The vectors (V, D) at length 1, float32; one of zeros stays."""
    wide: Array = np.asarray(vectors, np.float32)
    largest = np.abs(wide).max(axis=1, keepdims=True)  # a square of it may have no room in float32
    wide = wide / np.where(largest > 0, largest, np.float32(1))
    length = np.sqrt(np.einsum("vd,vd->v", wide, wide))[:, None]
    return np.ascontiguousarray(wide / np.where(length > 0, length, np.float32(1)))


def _seeds(seed: int, begin: Array, end: Array) -> Array:
    """One number for every segment, which follows from where it lies."""
    place = (begin.astype(np.uint64) << np.uint64(32)) + end.astype(np.uint64)
    with np.errstate(over="ignore"):
        return place + np.uint64(seed) * GOLDEN


@launched(parallel=True)
def _split(order, unit, begin, end, cut, seeds, masses, quality, widest):
    """Put the classes of every segment in an order whose first cut - begin are alike.

    With masses (V,) the cut is found, and written: no side has more classes than `widest`.
    """
    for s in numba.prange(begin.size):
        ids, left = order[begin[s] : end[s]], cut[s] - begin[s]
        cut[s] = begin[s] + _part(ids, unit, left, seeds[s], masses, quality, widest)


# Loops instead of expressions of arrays: those take Numba ten seconds more.


@called()
def _part(ids, unit, left, seed, masses, quality, widest):
    """Put the classes of one segment in order; returns how many stand on the left, without masses `left`."""
    count = ids.size
    some = _every(ids, max(1, count // SAMPLE))
    key, centre = np.empty(count, np.float32), _begin(unit, some, seed)
    side = np.zeros(some.size, np.bool_)  # of each place
    for _ in range(ROUNDS):
        _project(key, unit, some, centre)
        ranked = np.argsort(-key[: some.size], kind="mergesort")
        if masses.size:
            near = _best_cut(key, ranked, some, masses, quality, some.size)
        else:
            near = max(1, left * some.size // count)
        if not _moved(side, ranked, near):
            break
        _centre(centre, unit, some, side)
    _project(key, unit, ids, centre)
    ranked = np.argsort(-key, kind="mergesort")
    if masses.size:
        left = _best_cut(key, ranked, ids, masses, quality, widest)
    before = _every(ids, 1)
    for rank in range(count):
        ids[rank] = before[ranked[rank]]
    return left


@called()
def _every(ids, step):
    """A copy of ids[::step]."""
    out = np.empty((ids.size + step - 1) // step, ids.dtype)
    for i in range(out.size):
        out[i] = ids[i * step]
    return out


@called()
def _begin(unit, ids, seed):
    """The first direction: one of the vectors against the one that is least like it."""
    chosen = unit[ids[int(mix(seed) % np.uint64(ids.size))]]
    key = np.empty(ids.size, np.float32)
    _project(key, unit, ids, chosen)
    return chosen - unit[ids[np.argmin(key)]]


@called(fastmath={"reassoc", "contract"})
def _project(key, unit, ids, centre):
    for i in range(ids.size):
        total = np.float32(0)
        for d in range(centre.size):
            total += unit[ids[i], d] * centre[d]
        key[i] = total


@called()
def _moved(side, ranked, left):
    """Write which places are on the left: those of the first ranks; False where they were before."""
    moved = False
    for rank in range(ranked.size):
        now = rank < left
        moved |= side[ranked[rank]] != now
        side[ranked[rank]] = now
    return moved


@called()
def _centre(centre, unit, ids, side):
    """Write the difference of the two sides' mean directions, each at length 1."""
    sums = np.zeros((2, centre.size))
    for i in range(ids.size):
        of = sums[int(side[i])]
        for d in range(centre.size):
            of[d] += unit[ids[i], d]
    for turn in range(2):
        square = 0.0
        for d in range(centre.size):
            square += sums[turn, d] ** 2
        length = np.sqrt(square)
        if length > 0:
            for d in range(centre.size):
                sums[turn, d] /= length
    for d in range(centre.size):
        centre[d] = sums[1, d] - sums[0, d]


@called()
def _best_cut(key, ranked, ids, masses, quality, widest):
    """How many of the classes, by falling key, stand on the left; see `Cuts`. ranked: the places in `ids` by falling key."""
    count = ranked.size
    mean, whole, spread = 0.0, 0.0, 0.0
    for i in range(count):
        mean += key[ranked[i]] / count
        whole += masses[ids[ranked[i]]]
    for i in range(count):
        spread += (key[ranked[i]] - mean) ** 2
    fewest = max(1, count - widest)
    best, cut = -1.0, count // 2
    above, before = 0.0, 0.0  # sum of the keys on the left, over their mean; mass on the left
    for left in range(1, count):
        above += key[ranked[left - 1]] - mean
        before += masses[ids[ranked[left - 1]]]
        if fewest <= left <= count - fewest:
            likeness = above * above * count / (left * (count - left) * spread) if spread > 1e-9 else 0.0
            share = before / whole
            bits = -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) if 0 < share < 1 else 0.0
            score = quality * likeness + (1 - quality) * bits
            if score > best:
                best, cut = score, left
    return cut if best > 0 else count // 2
