"""The k best of a stream of scored ids, in two arrays that form a heap with the worst of them at the root.

Better is a higher score, and among equal scores a lower id; a NaN is best of all, so that it stays visible. At first, after
`clear`, ids are -1 and scores -inf.
"""

import math

import numba
import numpy as np

from cpu.compiled import called, launched


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
