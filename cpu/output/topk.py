"""The k best of a stream of scored ids, and what searches for them share.

The k best are two arrays that form a heap with the worst of them at the root. Better is a higher score, and among equal scores
a lower id; a NaN is best of all, so that it stays visible. At first, after `clear`, ids are -1 and scores -inf.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from cpu.runtime.compiled import Array, called, launched


class Excluded(NamedTuple):
    """Row b excludes ids[first[b] : last[b]], which rise and are distinct.

    first, last  (B,) int64
    ids          (N,) int32
    """

    first: np.ndarray
    last: np.ndarray
    ids: np.ndarray

    def of(self, rows: slice | Array) -> "Excluded":
        """What some of the rows exclude; rows: a slice or indices."""
        return Excluded(self.first[rows], self.last[rows], self.ids)


def none_excluded(rows: int) -> Excluded:
    """No row excludes anything."""
    ends = np.zeros(rows, np.int64)
    return Excluded(ends, ends, np.empty(0, np.int32))


@launched()
def seek(ids, first, last, id_):
    """The first place in ids[first : last] that holds id_ or a higher id; `last` where there is none."""
    while first < last:
        middle = (first + last) // 2
        if ids[middle] < id_:
            first = middle + 1
        else:
            last = middle
    return first


@launched()
def is_excluded(ids, first, last, id_):
    """Whether id_ is among ids[first : last]."""
    place = seek(ids, first, last, id_)
    return place < last and ids[place] == id_


@called()
def clear(ids, scores):
    """Leave nothing in the heap."""
    for i in range(ids.size):
        ids[i], scores[i] = -1, -np.inf


@called()
def push(ids, scores, id_, score):
    """Take an id in place of the worst, where it is better."""
    if _worse(scores[0], ids[0], score, id_):
        ids[0], scores[0] = id_, score
        _sink(ids, scores, ids.size)


@called()
def sort(ids, scores):
    """Best first; ends the heap."""
    for size in range(ids.size - 1, 0, -1):
        ids[0], ids[size] = ids[size], ids[0]
        scores[0], scores[size] = scores[size], scores[0]
        _sink(ids, scores, size)


@launched(parallel=True)
def merge(ids, scores, parts, part_scores, threads):
    """Push the heaps of all parts (S, B, P) into those of ids and scores (B, k), and sort them."""
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
    """Push the classes that have a slot alone and are not left out into a heap of the k best."""
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
    """Let the root sink to its place among the first `size`."""
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


# A heap of (key, item) pairs in two arrays, the greatest at its top: what best-first searches go on from next.


@launched()
def heap_push(keys, items, size, key, item):
    """Add to the heap, which doubles when it is full; returns its size and arrays."""
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
    """Remove the top of the heap, if there is one; returns its size."""
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
    """A copy with room for twice as many; a loop, since np.append takes Numba long to compile."""
    out = np.empty(2 * values.size, values.dtype)
    for i in range(values.size):
        out[i] = values[i]
    return out
