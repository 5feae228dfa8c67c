"""Brute force search: the nearest rows of a table by cosine or dot product; GEMMs score all rows in chunks.

Among equal scores the lower id is first, so results do not depend on the partition of rows among threads.
"""

import math

import numba
import numpy as np

from cpu.output import topk
from cpu.output.topk import Excluded, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.runtime.memory import prefetch_row
from cpu.vectors.activation import ZERO
from cpu.vectors.blas import CHUNK, gemm

QUERIES = 256  # queries per pass, whose scratch is some MB
GROUP = 64  # rows compared as a group with the worst of the best so far, before each is checked


def search(
    ids: Array, scores: Array, table: Array, hidden: Array, metric: str, rows: Array | None = None,
    proposed: Array | None = None, without: Excluded | None = None,
) -> None:  # fmt: skip
    """Writes the k nearest rows of each query, nearest first; ids (B, k) int32, scores (B, k); table (V, D), hidden (B, D).

    metric    "angular": scores are cosines, 0 with a zero vector; "dot": dot products
    rows      (N,) int32, ascending: search only these rows
    proposed  (B, P) int32: for each query, also search these rows, which are not among `rows`; -1: none
    without   the rows that each query excludes, see cpu/output/topk.py

    If fewer than k rows are searched, the last ids are -1 and their scores -inf.
    """
    everything = rows is None
    rows = np.arange(len(table), dtype=np.int32) if rows is None else rows
    without = without or none_excluded(len(hidden))
    angular, threads = metric == "angular", numba.get_num_threads()
    if not rows.size and proposed is not None:
        _take(ids, scores, table, proposed, hidden, angular, *without, True, threads)
    else:
        ids[:], scores[:] = -1, -np.inf
        some = np.empty((threads, 0 if everything else min(CHUNK, rows.size), table.shape[1]), table.dtype)
        most = min(ids.shape[1], rows.size)
        for first in range(0, len(hidden), QUERIES):
            part = slice(first, min(first + QUERIES, len(hidden)))
            best = np.full((threads, part.stop - first, most), -1, np.int32)
            best_scores = np.full(best.shape, -np.inf, table.dtype)
            dots, lengths = np.empty((*best.shape[:2], CHUNK), table.dtype), np.ones((threads, CHUNK), table.dtype)
            left_out = without.of(part)
            _scan(best, best_scores, dots, lengths, some, table, rows, hidden[part], angular, *left_out)
            if proposed is not None:
                _take(ids[part], scores[part], table, proposed[part], hidden[part], angular, *left_out, False, threads)
            topk.merge(ids[part], scores[part], best, best_scores, threads)
    if angular:
        lengths = np.linalg.norm(hidden, axis=1, keepdims=True).astype(scores.dtype)
        np.divide(scores, lengths, out=scores, where=lengths > 0)


@launched(parallel=True)
def _scan(best, scores, dots, lengths, some, table, rows, hidden, angular, out_first, out_last, left_out):
    """Writes the best of each thread's rows, as heaps. Chunks are whole, so products are bit-identical at any thread count."""
    threads, chunks = best.shape[0], -(-rows.size // CHUNK)
    for thread in numba.prange(threads):
        last = min((thread + 1) * chunks // threads * CHUNK, rows.size)
        for begin in range(thread * chunks // threads * CHUNK, last, CHUNK):
            end = min(begin + CHUNK, last)
            chunk = _chunk(some[thread], table, rows, begin, end)
            gemm(dots[thread, :, : end - begin], hidden, chunk.T, 1.0, 0.0)
            for j in range(end - begin if angular else 0):
                lengths[thread, j] = _length(chunk[j])
            for b in range(hidden.shape[0]):
                row_dots = dots[thread, b, : end - begin]
                if angular:
                    _divide(row_dots, lengths[thread])
                _push(
                    best[thread, b], scores[thread, b], rows[begin:end], row_dots, left_out[out_first[b] : out_last[b]]
                )


@called()
def _push(ids, scores, rows, dots, left_out):
    """Pushes the rows of a chunk that are as good as the worst so far, and are not excluded.

    Few rows qualify after the first. So a whole group is compared first, with one vector instruction for many rows.
    """
    for begin in range(0, rows.size, GROUP):
        end = min(begin + GROUP, rows.size)
        worst, some = scores[0], 0
        for j in range(begin, end):
            some |= not dots[j] < worst  # also a NaN
        if some:
            for j in range(begin, end):
                if not dots[j] < scores[0] and not is_excluded(left_out, 0, left_out.size, rows[j]):
                    topk.push(ids, scores, rows[j], dots[j])


@called()
def _divide(dots, lengths):
    for j in range(dots.size):
        dots[j] /= lengths[j]


@called()
def _chunk(some, table, rows, begin, end):
    """Returns these rows of the table: a view when all rows are searched, else a copy in `some`."""
    if some.shape[0] == 0:
        return table[begin:end]
    for j in range(end - begin):
        for d in range(table.shape[1]):
            some[j, d] = table[rows[begin + j], d]
    return some[: end - begin]


@launched(parallel=True)
def _take(ids, scores, table, proposed, hidden, angular, out_first, out_last, left_out, ordered, threads):
    """Writes the best of each query's own proposals, as a heap; ordered: best first."""
    size = -(-ids.shape[0] // threads)
    for thread in numba.prange(threads):
        last = min((thread + 1) * size, ids.shape[0])
        for b in range(thread * size, last):
            topk.clear(ids[b], scores[b])
            for i in range(proposed.shape[1] if b + 1 < last else 0):
                prefetch_row(table, max(proposed[b + 1, i], 0))
            for i in range(proposed.shape[1]):
                row = proposed[b, i]
                if row >= 0 and not is_excluded(left_out, out_first[b], out_last[b], row):
                    score = _dot(table[row], hidden[b])
                    topk.push(ids[b], scores[b], row, score / _length(table[row]) if angular else score)
            if ordered:
                topk.sort(ids[b], scores[b])


@called(fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = ZERO
    for d in range(a.size):
        total += a[d] * b[d]
    return total


@called()
def _length(a):
    """Returns the length of a vector; 1 for a zero vector, so that its cosines are 0."""
    square = _dot(a, a)
    return math.sqrt(square) if square > 0 else square + 1
