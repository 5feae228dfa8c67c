"""Logistic regression along lists of rows: the inner kernel of the tree and of negative sampling.

An example brings a hidden vector h and a list of entries 2 * row + turn, each of another row. At each of its rows w

    miss = turn - logistic(w . h);  grad -= miss * w;  w += rate * miss * h;  loss -= log p(turn)

where grad uses the row before it moves. Hidden vectors do not change within a batch, so the new value of a row depends
only on its old value and on the examples that visit it, in order, not on other rows. So each row has one of a fixed
number of *owners*. One thread works for an owner: it takes the examples in order and moves the owner's rows. Every row
goes through exactly the steps of the serial loop over examples, bit for bit, at any number of threads; and no two
threads write one row, so the often used rows near a root stay in the cache of one core.

Kernels below the parallel loops are compiled without reference counts (`_nrt=False`): a count is an atomic addition
that all threads fight over, and costs more than a row does.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.activation import ZERO, miss_and_loss
from cpu.aligned import empty
from cpu.array import Array
from cpu.prefetch import prefetch_row
from cpu.simd import LANES, load_row, multiply_add, splat, store_row, store_totals, totals
from cpu.threads import shared

OWNERS = 4  # owners of rows; the most threads that share one deterministic step
AHEAD = 2  # examples between asking for a row and using it
HOT = 2048  # rows below are near the root, and in the cache anyway
LONGEST = 16  # examples of a group, see cpu/groups.py
WIDE = 16  # scores judged at once: the compiler makes vectors of a loop of 16, and not of one of 4

INNER = {"cache": True, "nogil": True, "_nrt": False, "forceinline": True}


class Work(NamedTuple):
    """Scratch for up to B examples with up to L entries each.

    entries  (B, L + WIDE) int32     2 * row + turn
    cuts     (B, OWNERS + 1) int32  entries[b, cuts[b, o]:cuts[b, o + 1]] belong to owner o
    grads    (OWNERS * B, D)        what owner o adds to the gradient of example b, in row o * B + b
    losses   (OWNERS, B)
    misses   (threads, ...)         of the current example or group; rows lie far enough apart not to share cache lines
    costs    (threads, ...)         -log p(turn) of the current group
    """

    entries: np.ndarray
    cuts: np.ndarray
    grads: np.ndarray
    losses: np.ndarray
    misses: np.ndarray
    costs: np.ndarray


def workspace(batch: int, width: int, length: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` examples of `width` numbers and up to `length` entries each."""
    threads = max(OWNERS, numba.config.NUMBA_NUM_THREADS)
    room = LONGEST * -(-length // WIDE) * WIDE + 128
    return Work(
        empty((batch, length + WIDE), np.int32),
        empty((batch, OWNERS + 1), np.int32),
        empty((OWNERS * batch, width), dtype),
        empty((OWNERS, batch), dtype),
        empty((threads, room), dtype),
        empty((threads, room), dtype),
    )


def learn(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, weight: Array | None, rule: Any, mode: str
) -> None:
    """Take all examples through their entries in `work`: write grad (B, D) and loss (B,), move the rows."""
    rows = learned.rows
    rate = rows.dtype.type(rule.rate)
    threads = numba.get_num_threads()
    if mode == "hogwild":
        _race(grad, loss, rows, work.entries, work.cuts, work.misses, hidden, rate, threads)
    else:
        workers = 1 if threads == 1 else OWNERS
        with shared(workers):
            _own(rows, *work[:5], hidden, rate, workers)
        add_owners(grad, loss, work.cuts, work.grads, work.losses, threads)


# Numba 0.68 loses writes to arrays of a namedtuple inside a parallel loop, so these take the arrays one by one.


@numba.njit(parallel=True, cache=True, nogil=True)
def _own(rows, entries, cuts, grads, losses, misses, hidden, rate, workers):
    """Each worker takes all examples through the rows of its owners."""
    batch = hidden.shape[0]
    for worker in numba.prange(workers):
        scratch = misses[worker]
        for b in range(batch):
            for owner in range(worker * OWNERS // workers, (worker + 1) * OWNERS // workers):
                first, last = cuts[b, owner], cuts[b, owner + 1]
                if b + AHEAD < batch:
                    _ask(rows, entries, b + AHEAD, cuts[b + AHEAD, owner], cuts[b + AHEAD, owner + 1])
                if last > first:
                    part = owner * batch + b
                    losses[owner, b] = visit(grads, part, rows, scratch, hidden, b, entries, first, last, rate)


@numba.njit(parallel=True, cache=True, nogil=True)
def _race(grad, loss, rows, entries, cuts, misses, hidden, rate, threads):
    """Each thread takes its part of the examples through all their rows, whoever else is there."""
    batch = hidden.shape[0]
    for thread in numba.prange(threads):
        scratch = misses[thread]
        end = (thread + 1) * batch // threads
        for b in range(thread * batch // threads, end):
            if b + AHEAD < end:
                _ask(rows, entries, b + AHEAD, 0, cuts[b + AHEAD, OWNERS])
            loss[b] = visit(grad, b, rows, scratch, hidden, b, entries, 0, cuts[b, OWNERS], rate)


@numba.njit(parallel=True, cache=True, nogil=True)
def add_owners(grad, loss, cuts, grads, losses, threads):
    """Sum what the owners found for each example, in the order of the owners."""
    batch, width = grad.shape
    for thread in numba.prange(threads):
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            loss[b] = 0
            for owner in range(OWNERS):
                if cuts[b, owner + 1] > cuts[b, owner]:
                    loss[b] += losses[owner, b]
            for d in range(0, width, LANES):
                _add(grad, cuts, grads, b, d, min(LANES, width - d))


@numba.njit(**INNER)
def _add(grad, cuts, grads, b, d, count):
    """Columns d to d + count of one sum."""
    value = splat(grad.dtype.type(0))
    for owner in range(OWNERS):
        if cuts[b, owner + 1] > cuts[b, owner]:
            value = multiply_add(splat(grad.dtype.type(1)), load_row(grads, owner * grad.shape[0] + b, d, count), value)
    store_row(grad, b, d, value, count)


@numba.njit(**INNER)
def _ask(rows, entries, b, first, last):
    """Ask for the rows at entries[b, first:last]."""
    for i in range(first, last):
        if entries[b, i] >> 1 >= HOT:
            prefetch_row(rows, entries[b, i] >> 1)


@numba.njit(**INNER)
def visit(out, part, rows, misses, hidden, b, entries, first, last, rate):
    """Example b at entries[b, first:last], each of another row: write out[part], move the rows, return the loss."""
    # Unsigned indices: Numba then leaves out its test for negative ones, which costs more here than the arithmetic.
    b, part, first, last = np.uintp(b), np.uintp(part), np.uintp(first), np.uintp(last)
    loss = ZERO
    for i in range(first, last, WIDE):
        score(misses, i, rows, hidden, b, entries, i, last)
        loss += _judge(misses, entries, b, i, last)
    width = hidden.shape[1]
    whole = width // LANES * LANES
    wide = width // (4 * LANES) * (4 * LANES)
    for d in range(0, wide, 4 * LANES):
        _move_wide(out, part, rows, misses, hidden, b, entries, first, last, rate, d)
    for d in range(wide, whole, LANES):
        _move(out, part, rows, misses, hidden, b, entries, first, last, rate, d, LANES)
    if whole < width:
        _move(out, part, rows, misses, hidden, b, entries, first, last, rate, whole, width - whole)
    return loss


@numba.njit(**INNER)
def score(scores, at, rows, hidden, b, entries, i, last):
    """scores[at : at + WIDE] = w . h of entries i and on, and numbers that nobody reads past the last."""
    q0 = _four_scores(scores, rows, hidden, b, entries, i, last)
    q1 = q2 = q3 = q0
    if i + np.uintp(4) < last:
        q1 = _four_scores(scores, rows, hidden, b, entries, i + np.uintp(4), last)
    if i + np.uintp(8) < last:
        q2 = _four_scores(scores, rows, hidden, b, entries, i + np.uintp(8), last)
    if i + np.uintp(12) < last:
        q3 = _four_scores(scores, rows, hidden, b, entries, i + np.uintp(12), last)
    store_totals(scores, at, q0, q1, q2, q3)


@numba.njit(**INNER)
def _four_scores(scores, rows, hidden, b, entries, i, last):
    """w . h of four entries: independent sums hide each other's latency. Past the last, its row again."""
    end = last - np.uintp(1)
    r0 = entries[b, i] >> 1
    r1 = entries[b, min(i + np.uintp(1), end)] >> 1
    r2 = entries[b, min(i + np.uintp(2), end)] >> 1
    r3 = entries[b, min(i + np.uintp(3), end)] >> 1
    s0 = s1 = s2 = s3 = splat(scores.dtype.type(0))
    width = hidden.shape[1]
    whole = width // LANES * LANES
    for d in range(0, whole, LANES):
        h = load_row(hidden, b, d, LANES)
        s0 = multiply_add(load_row(rows, r0, d, LANES), h, s0)
        s1 = multiply_add(load_row(rows, r1, d, LANES), h, s1)
        s2 = multiply_add(load_row(rows, r2, d, LANES), h, s2)
        s3 = multiply_add(load_row(rows, r3, d, LANES), h, s3)
    if whole < width:
        rest = width - whole
        h = load_row(hidden, b, whole, rest)
        s0 = multiply_add(load_row(rows, r0, whole, rest), h, s0)
        s1 = multiply_add(load_row(rows, r1, whole, rest), h, s1)
        s2 = multiply_add(load_row(rows, r2, whole, rest), h, s2)
        s3 = multiply_add(load_row(rows, r3, whole, rest), h, s3)
    return totals(s0, s1, s2, s3)


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract"}, **INNER)
def _judge(misses, entries, b, i, last):
    """Turn WIDE scores into misses, turn - logistic(score); returns what -log p(turn) sums to.

    All of them, also those past the last: then the compiler makes vectors of the loop.
    """
    loss = ZERO
    for k in range(WIDE):
        j = i + np.uintp(k)
        misses[j], cost = miss_and_loss(misses[j], entries[b, j] & 1)
        loss += cost if j < last else ZERO
    return loss


@numba.njit(**INNER)
def _move(out, part, rows, misses, hidden, b, entries, first, last, rate, d, count):
    """Columns d to d + count of the gradient and of all rows."""
    grad = splat(out.dtype.type(0))
    h = multiply_add(load_row(hidden, b, d, count), splat(rate), grad)
    for i in range(first, last):
        row = entries[b, i] >> 1
        w = load_row(rows, row, d, count)
        grad = multiply_add(splat(-misses[i]), w, grad)
        store_row(rows, row, d, multiply_add(splat(misses[i]), h, w), count)
    store_row(out, part, d, grad, count)


@numba.njit(**INNER)
def _move_wide(out, part, rows, misses, hidden, b, entries, first, last, rate, d):
    """The same for 4 LANES columns at once: a row's place is worked out once for all of them."""
    d1, d2, d3 = d + LANES, d + 2 * LANES, d + 3 * LANES
    g0 = g1 = g2 = g3 = splat(out.dtype.type(0))
    step = splat(rate)
    h0 = multiply_add(load_row(hidden, b, d, LANES), step, g0)
    h1 = multiply_add(load_row(hidden, b, d1, LANES), step, g0)
    h2 = multiply_add(load_row(hidden, b, d2, LANES), step, g0)
    h3 = multiply_add(load_row(hidden, b, d3, LANES), step, g0)
    for i in range(first, last):
        row = entries[b, i] >> 1
        miss, back = splat(misses[i]), splat(-misses[i])
        w0, w1 = load_row(rows, row, d, LANES), load_row(rows, row, d1, LANES)
        w2, w3 = load_row(rows, row, d2, LANES), load_row(rows, row, d3, LANES)
        g0, g1 = multiply_add(back, w0, g0), multiply_add(back, w1, g1)
        g2, g3 = multiply_add(back, w2, g2), multiply_add(back, w3, g3)
        store_row(rows, row, d, multiply_add(miss, h0, w0), LANES)
        store_row(rows, row, d1, multiply_add(miss, h1, w1), LANES)
        store_row(rows, row, d2, multiply_add(miss, h2, w2), LANES)
        store_row(rows, row, d3, multiply_add(miss, h3, w3), LANES)
    store_row(out, part, d, g0, LANES)
    store_row(out, part, d1, g1, LANES)
    store_row(out, part, d2, g2, LANES)
    store_row(out, part, d3, g3, LANES)
