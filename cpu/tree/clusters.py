"""Clustering of similar classes by repeated 2-means over unit vectors, into parts of equal size or a binary tree.

A segment of classes is sorted along the difference of two centres, and cut. The two sides give new centres and a new order, a
few times. As in Prabhu et al. 2018, "Parabel: Partitioned Label Trees for Extreme Classification with Application to Dynamic
Search Advertising", where the cut is in the middle. A tree is cut between the most dissimilar classes along the order instead.

One thread splits a segment, with a seed that depends only on the segment: bit-identical at any number of threads. A zero vector
resembles no other, and of equal vectors the lower class comes first. If all are equal, the cut is in the middle.
"""

import numba
import numpy as np
from numpy.typing import ArrayLike

from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.splitmix import GOLDEN, mix

ROUNDS = 8  # maximum number of 2-means iterations; most segments converge after four or five
SAMPLE = 16384  # larger segments compute the centres from about this many evenly spaced classes


def equal(vectors: ArrayLike, parts: int, *, seed: int = 0) -> Array:
    """Returns the part, 0 to `parts` - 1, of each class: (V,) int32; sizes differ by 1 at most, neighbouring parts are similar.

    vectors  (V, D): one per class, of which only the directions count
    parts    1 to V

    It costs O(V D log parts). The division depends only on the arguments.
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
        _split(order, unit, begin, end, cut, _seeds(seed, begin, end), False, classes)
        first, last = np.sort(np.concatenate([first, middle[wide]])), np.sort(np.concatenate([last, middle[wide]]))
    part[order] = np.repeat(np.arange(parts, dtype=np.int32), np.diff(at))
    return part


def binary(vectors: ArrayLike, depth: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Builds a tree over V >= 2 classes: leaf_up and node_up of `cpu.tree.tree.Tree`, numbered breadth first.

    depth  maximum number of nodes on a path
    """
    unit = _unit(vectors)
    order = np.arange(len(unit), dtype=np.int32)
    leaf_up, node_up = np.empty(len(unit), np.int32), np.empty(len(unit) - 1, np.int32)
    begin, end, up = np.array([0]), np.array([len(unit)]), np.array([-1], np.int32)
    level = node = 0
    while begin.size:
        cut = np.empty_like(begin)
        widest = min(2 ** max(depth - level - 1, 0), len(unit))
        _split(order, unit, begin, end, cut, _seeds(seed, begin, end), True, widest)
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
    """Returns the vectors (V, D) at length 1, float32; zero vectors stay zero."""
    wide: Array = np.asarray(vectors, np.float32)
    largest = np.abs(wide).max(axis=1, keepdims=True)  # its square may overflow float32
    wide = wide / np.where(largest > 0, largest, np.float32(1))
    length = np.sqrt(np.einsum("vd,vd->v", wide, wide))[:, None]
    return np.ascontiguousarray(wide / np.where(length > 0, length, np.float32(1)))


def _seeds(seed: int, begin: Array, end: Array) -> Array:
    """Returns one seed per segment, a function of its bounds."""
    place = (begin.astype(np.uint64) << np.uint64(32)) + end.astype(np.uint64)
    with np.errstate(over="ignore"):
        return place + np.uint64(seed) * GOLDEN


@launched(parallel=True)
def _split(order, unit, begin, end, cut, seeds, free, widest):
    """Sorts the classes of every segment so that the first cut - begin are similar.

    free  True: the cut is computed and written: no side has more classes than `widest`
    """
    for s in numba.prange(begin.size):
        ids, left = order[begin[s] : end[s]], cut[s] - begin[s]
        cut[s] = begin[s] + _part(ids, unit, left, seeds[s], free, widest)


# Loops instead of array expressions, which take Numba ten seconds more to compile.


@called()
def _part(ids, unit, left, seed, free, widest):
    """Sorts the classes of one segment; returns the number on the left, which is `left` unless the cut is free."""
    count = ids.size
    some = _every(ids, max(1, count // SAMPLE))
    key, centre = np.empty(count, np.float32), _begin(unit, some, seed)
    side = np.zeros(some.size, np.bool_)  # True: on the left
    for _ in range(ROUNDS):
        _project(key, unit, some, centre)
        ranked = np.argsort(-key[: some.size], kind="mergesort")
        if free:
            near = _best_cut(key, ranked, some.size)
        else:
            near = max(1, left * some.size // count)
        if not _moved(side, ranked, near):
            break
        _centre(centre, unit, some, side)
    _project(key, unit, ids, centre)
    ranked = np.argsort(-key, kind="mergesort")
    if free:
        left = _best_cut(key, ranked, widest)
    before = _every(ids, 1)
    for rank in range(count):
        ids[rank] = before[ranked[rank]]
    return left


@called()
def _every(ids, step):
    """Returns a copy of ids[::step]."""
    out = np.empty((ids.size + step - 1) // step, ids.dtype)
    for i in range(out.size):
        out[i] = ids[i * step]
    return out


@called()
def _begin(unit, ids, seed):
    """Returns the first direction: a random vector minus the one least similar to it."""
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
    """Writes the mask of the left side, the first ranks; returns True if it changed."""
    moved = False
    for rank in range(ranked.size):
        now = rank < left
        moved |= side[ranked[rank]] != now
        side[ranked[rank]] = now
    return moved


@called()
def _centre(centre, unit, ids, side):
    """Writes the difference of the two sides' mean directions, each at length 1."""
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
def _best_cut(key, ranked, widest):
    """Returns the number of classes on the left, by falling key, for which the cut explains most of the variance of the keys.

    ranked  indices by falling key
    """
    count = ranked.size
    mean, spread = 0.0, 0.0
    for i in range(count):
        mean += key[ranked[i]] / count
    for i in range(count):
        spread += (key[ranked[i]] - mean) ** 2
    fewest = max(1, count - widest)
    best, cut = -1.0, count // 2
    above = 0.0  # left side: sum of the keys minus their mean
    for left in range(1, count):
        above += key[ranked[left - 1]] - mean
        if fewest <= left <= count - fewest:
            likeness = above * above * count / (left * (count - left) * spread) if spread > 1e-9 else 0.0
            if likeness > best:
                best, cut = likeness, left
    return cut if best > 0 else count // 2
