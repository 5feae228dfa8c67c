"""Logistic regression along lists of rows: the inner kernel of the tree and of negative sampling.

An example b brings a hidden vector h and a list of entries 2 * row + turn. At each of its rows w

    miss = turn - logistic(w . h);  grad -= miss * w;  w += rate * miss * h;  loss -= log p(turn)

where grad uses the row as it was found. Hidden vectors stand still within a batch, so what becomes of a row depends on
nothing but the row and the examples that meet it, in order: rows do not know of each other. Therefore rows have
*owners*: a fixed number of shards, each worked by one thread, which takes the examples in order and moves the rows that
it owns. Every row goes through exactly what the serial loop over examples would do to it, bit for bit, at any number of
threads; no two threads write one row, so the hot rows near a root stay in the cache of their owner.
"""

from typing import NamedTuple

import numba
import numpy as np

from cpu.activation import ONE, ZERO, exp, log1p
from cpu.lanes import LANES, load, multiply_add, splat, store, store_totals
from cpu.prefetch import prefetch_row

import os
SHARDS = int(os.environ.get("S", 4))  # owners of rows; the most threads that share one deterministic step
BLOCK = 4  # scores made into misses at once
AHEAD = int(os.environ.get("A", 2))  # examples between asking for a row and using it


class Work(NamedTuple):
    """Scratch of up to B examples with up to L entries each.

    entries  (B, L) int32           2 * row + turn
    cuts     (B, SHARDS + 1) int32  entries[b, cuts[b, s]:cuts[b, s + 1]] belong to shard s
    grads    (SHARDS - 1, B, D)     what all shards but the last add to the gradient, which the last writes itself
    losses   (SHARDS, B)
    misses   (SHARDS, L rounded up)
    """

    entries: np.ndarray
    cuts: np.ndarray
    grads: np.ndarray
    losses: np.ndarray
    misses: np.ndarray


def workspace(batch, width, length, dtype) -> Work:
    """Scratch for calls with up to `batch` examples of `width` numbers and up to `length` entries each."""
    return Work(
        np.empty((batch, length + 2 * BLOCK), np.int32),
        np.empty((batch, SHARDS + 1), np.int32),
        np.empty((SHARDS * batch, width), dtype),
        np.empty((SHARDS, batch), dtype),
        np.zeros((max(SHARDS, numba.config.NUMBA_NUM_THREADS), length + 128), dtype),
    )


def learn(grad, loss, rows, work, hidden, rate, mode):
    """Take all examples through their entries in `work`: write grad (B, D) and loss (B,), move `rows`."""
    rate = rows.dtype.type(rate)
    if mode == "hogwild":
        _race(grad, loss, rows, work.entries, work.cuts, work.misses, hidden, rate, numba.get_num_threads())
    else:
        _own(grad, rows, *work, hidden, rate, min(SHARDS, numba.get_num_threads()))
        _sum(grad, loss, work.cuts, work.grads, work.losses, numba.get_num_threads())


@numba.njit(parallel=True, cache=True, nogil=True)
def _own(grad, rows, entries, cuts, grads, losses, misses, hidden, rate, threads):
    for thread in numba.prange(threads):
        scratch = misses[thread]
        for b in range(grad.shape[0]):
            for shard in range(thread * SHARDS // threads, (thread + 1) * SHARDS // threads):
                if b + AHEAD < grad.shape[0]:
                    for i in range(cuts[b + AHEAD, shard], cuts[b + AHEAD, shard + 1]):
                        prefetch_row(rows, entries[b + AHEAD, i] >> 1)
                first, last = cuts[b, shard], cuts[b, shard + 1]
                if last > first:
                    part = shard * grad.shape[0] + b
                    losses[shard, b] = visit(grads, part, rows, scratch, hidden, b, entries, first, last, rate)


@numba.njit(parallel=True, cache=True, nogil=True)
def _race(grad, loss, rows, entries, cuts, misses, hidden, rate, chunks):
    size = -(-grad.shape[0] // chunks)
    for chunk in numba.prange(chunks):
        end = min((chunk + 1) * size, grad.shape[0])
        scratch = misses[chunk]
        for b in range(chunk * size, end):
            if b + AHEAD < end:
                for i in range(cuts[b + AHEAD, SHARDS]):
                    prefetch_row(rows, entries[b + AHEAD, i] >> 1)
            loss[b] = visit(grad, b, rows, scratch, hidden, b, entries, 0, cuts[b, SHARDS], rate)


@numba.njit(parallel=True, cache=True, nogil=True)
def _sum(grad, loss, cuts, grads, losses, chunks):
    """Add up the shards of each example, in their order."""
    size = -(-grad.shape[0] // chunks)
    width = grad.shape[1]
    for chunk in numba.prange(chunks):
        for b in range(chunk * size, min((chunk + 1) * size, grad.shape[0])):
            total = ZERO
            for shard in range(SHARDS):
                if cuts[b, shard + 1] > cuts[b, shard]:
                    total += losses[shard, b]
            loss[b] = total
            for d in range(0, width, LANES):
                _add(grad, cuts, grads, b, d, min(LANES, width - d))


@numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
def _add(grad, cuts, grads, b, d, count):
    one = splat(grad.dtype.type(1))
    value = splat(grad.dtype.type(0))
    for shard in range(SHARDS):
        if cuts[b, shard + 1] > cuts[b, shard]:
            value = multiply_add(one, load(grads, shard * grad.shape[0] + b, d, count), value)
    store(grad, b, d, value, count)


@numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
def visit(out, part, rows, misses, hidden, b, entries, first, last, rate):
    """Example b at entries[b, first:last], each of another row: write out[b], move the rows, return the loss."""
    for i in range(first, last, 4):
        _score(misses, rows, hidden, b, entries, i, last)
    loss = ZERO
    for i in range(first, last, BLOCK):
        loss += _judge(misses, entries[b], i, last)
    width = hidden.shape[1]
    whole = width // LANES * LANES
    for d in range(0, whole, LANES):
        _move(out, part, rows, misses, hidden, b, entries, first, last, rate, d, LANES)
    if whole < width:
        _move(out, part, rows, misses, hidden, b, entries, first, last, rate, whole, width - whole)
    return loss


@numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
def _score(scores, rows, hidden, b, entries, i, last):
    """w . h of up to four entries at once; past the last, its row again and a score that nobody reads."""
    r0 = entries[b, i] >> 1
    r1 = entries[b, min(i + 1, last - 1)] >> 1
    r2 = entries[b, min(i + 2, last - 1)] >> 1
    r3 = entries[b, min(i + 3, last - 1)] >> 1
    width = hidden.shape[1]
    whole = width // LANES * LANES
    s0 = s1 = s2 = s3 = splat(scores.dtype.type(0))
    for d in range(0, whole, LANES):
        h = load(hidden, b, d, LANES)
        s0 = multiply_add(load(rows, r0, d, LANES), h, s0)
        s1 = multiply_add(load(rows, r1, d, LANES), h, s1)
        s2 = multiply_add(load(rows, r2, d, LANES), h, s2)
        s3 = multiply_add(load(rows, r3, d, LANES), h, s3)
    if whole < width:
        rest = width - whole
        h = load(hidden, b, whole, rest)
        s0 = multiply_add(load(rows, r0, whole, rest), h, s0)
        s1 = multiply_add(load(rows, r1, whole, rest), h, s1)
        s2 = multiply_add(load(rows, r2, whole, rest), h, s2)
        s3 = multiply_add(load(rows, r3, whole, rest), h, s3)
    store_totals(scores, i, s0, s1, s2, s3)


@numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _judge(misses, entries, i, last):
    """Scores i to i + BLOCK become misses, turn - logistic(score); returns what -log p(turn) sums to."""
    loss = ZERO
    for j in range(i, i + BLOCK):
        score = misses[j]
        turn = entries[j] & 1
        toward = score if turn else -score
        small = exp(-abs(score))
        wrong = (small if toward > 0 else ONE) / (ONE + small)
        misses[j] = wrong if turn else -wrong
        loss += log1p(small) - (toward if toward < 0 else ZERO) if j < last else ZERO
    return loss


@numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
def _move(out, part, rows, misses, hidden, b, entries, first, last, rate, d, count):
    """Columns d to d + count of the gradient and of all rows."""
    grad = splat(out.dtype.type(0))
    h = multiply_add(load(hidden, b, d, count), splat(rate), grad)
    for i in range(first, last):
        row = entries[b, i] >> 1
        w = load(rows, row, d, count)
        grad = multiply_add(splat(-misses[i]), w, grad)
        store(rows, row, d, multiply_add(splat(misses[i]), h, w), count)
    store(out, part, d, grad, count)
