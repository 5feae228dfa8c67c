"""The k best of a stream of scored ids, and common parts of searches.

The k best are two arrays that form a heap with the worst of them at the root. Better is a higher score, and among equal scores
a lower id. A NaN is best of all, so that it stays visible. After `clear`, ids are -1 and scores -inf.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from cpu.runtime.compiled import Array, called, launched


class Excluded(NamedTuple):
    """The excluded ids: row b excludes ids[first[b] : last[b]], ascending and distinct.

    first, last  (B,) int64
    ids          (N,) int32
    """

    first: np.ndarray
    last: np.ndarray
    ids: np.ndarray

    def of(self, rows: slice | Array) -> "Excluded":
        """Returns the exclusions of some rows; rows: a slice or indices."""
        return Excluded(self.first[rows], self.last[rows], self.ids)


def none_excluded(rows: int) -> Excluded:
    """Returns an Excluded without exclusions."""
    ends = np.zeros(rows, np.int64)
    return Excluded(ends, ends, np.empty(0, np.int32))


@launched()
def seek(ids, first, last, id_):
    """Returns the first index in ids[first : last] of id_ or a higher id; `last` if there is none."""
    while first < last:
        middle = (first + last) // 2
        if ids[middle] < id_:
            first = middle + 1
        else:
            last = middle
    return first


@launched()
def is_excluded(ids, first, last, id_):
    """True if id_ is in ids[first : last]."""
    place = seek(ids, first, last, id_)
    return place < last and ids[place] == id_


@called()
def clear(ids, scores):
    """Empties the heap."""
    for i in range(ids.size):
        ids[i], scores[i] = -1, -np.inf


@called()
def push(ids, scores, id_, score):
    """Replaces the worst entry by an id, if that is better."""
    if _worse(scores[0], ids[0], score, id_):
        ids[0], scores[0] = id_, score
        _sink(ids, scores, ids.size)


@called()
def sort(ids, scores):
    """Sorts the heap, best first; afterwards it is no heap."""
    for size in range(ids.size - 1, 0, -1):
        ids[0], ids[size] = ids[size], ids[0]
        scores[0], scores[size] = scores[size], scores[0]
        _sink(ids, scores, size)


@launched(parallel=True)
def merge(ids, scores, parts, part_scores, threads):
    """Pushes the heaps of all parts (S, B, P) into those of ids and scores (B, k), and sorts them."""
    size = -(-ids.shape[0] // threads)
    for thread in numba.prange(threads):
        for b in range(thread * size, min((thread + 1) * size, ids.shape[0])):
            for part in range(parts.shape[0]):
                for i in range(parts.shape[2]):
                    if parts[part, b, i] >= 0:
                        push(ids[b], scores[b], parts[part, b, i], part_scores[part, b, i])
            sort(ids[b], scores[b])


@called()
def offer(ids, scores, slots, alone, left_out, first, last):
    """Pushes the classes with a slot of their own that are not excluded into a heap of the k best."""
    for slot in range(alone.size):
        if not slots[slot] < scores[0] and not is_excluded(left_out, first, last, alone[slot]):
            push(ids, scores, alone[slot], slots[slot])


@called()
def _worse(score, id_, other_score, other_id):
    if math.isnan(other_score):
        return not math.isnan(score)
    return score < other_score or (score == other_score and (id_ > other_id or id_ < 0))


@called()
def _sink(ids, scores, size):
    """Sifts the root down to its place among the first `size`."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(scores[child + 1], ids[child + 1], scores[child], ids[child]):
            child += 1
        if not _worse(scores[child], ids[child], scores[at], ids[at]):
            break
        ids[at], ids[child] = ids[child], ids[at]
        scores[at], scores[child] = scores[child], scores[at]
        at = child


# A heap of (key, item) pairs in two arrays with the greatest at its top: the queue of best-first searches.


@launched()
def heap_push(keys, items, size, key, item):
    """Adds to the heap, which doubles when it is full; returns its size and arrays."""
    if size == keys.size:
        keys, items = _doubled(keys), _doubled(items)
    place = size
    while place:
        up = (place - 1) // 2
        if (keys[up], items[up]) >= (key, item):
            break
        keys[place], items[place] = keys[up], items[up]
        place = up
    keys[place], items[place] = key, item
    return size + 1, keys, items


@launched()
def drop(keys, items, size):
    """Removes the top of the heap, if there is one; returns its size."""
    if size < 2:
        return 0
    size -= 1
    key, item = keys[size], items[size]
    place = 0
    while 2 * place + 1 < size:
        down = 2 * place + 1
        if down + 1 < size and (keys[down + 1], items[down + 1]) > (keys[down], items[down]):
            down += 1
        if (key, item) >= (keys[down], items[down]):
            break
        keys[place], items[place] = keys[down], items[down]
        place = down
    keys[place], items[place] = key, item
    return size


@called()
def _doubled(values):
    """Returns a copy with twice the room; a loop, since np.append is slow to compile in Numba."""
    out = np.empty(2 * values.size, values.dtype)
    for i in range(values.size):
        out[i] = values[i]
    return out
