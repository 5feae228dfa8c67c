"""Groups: neighbouring examples of a batch with the same list of rows learn together, as a small batch of their own.

Skip-gram makes such groups: all context words around one centre word follow the centre word's path. One after another,
as in cpu/logistic_rows.py, each example waits for the rows that the one before has moved. A group reads the rows once,
before any of them moves: so no example waits, a row is written once a group, and the logistic functions are computed
side by side:

    miss[e, n] = turn[n] - logistic(w[n] . h[e]);  grad[e] -= sum_n miss[e, n] w[n];  w[n] += rate sum_e miss[e, n] h[e]

So a visit, in the sense of cpu/rule.py, is that of a group, and its gradient the sum over e.

Ji et al. 2016, "Parallelizing Word2Vec in Shared and Distributed Memory", arXiv:1604.04661. Rows have owners as in
cpu/logistic_rows.py: the same bits at any number of threads.
"""

from typing import Any

import numba
import numpy as np

from cpu.activation import ZERO, miss_and_loss
from cpu.array import Array
from cpu.compiled import inlined, launched
from cpu.halves import dice, thrown
from cpu.logistic_rows import LONGEST, OWNERS, Work, add_owners
from cpu.logistic_visit import WIDE, add_biases, score, weigh, weighed
from cpu.rule import by_row, cut, decayed, move_bias, pace, paced, paced_by, pushed, put, scale_of, size
from cpu.simd import LANES, load_row, multiply_add, splat, store_row, total


def learn(grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, weight: Array | None, rule: Any) -> None:
    """As `learn` of cpu/logistic_rows.py, but groups learn together."""
    threads = min(numba.get_num_threads(), OWNERS)
    moves = work.moves if by_row(learned, rule) else None
    given = hidden, weight, *pace(rule, hidden.dtype), dice(rule)
    _own_groups(grad, loss, *learned, *work[:6], moves, *given, threads)
    if threads > 1:
        add_owners(grad, loss, work.cuts, work.grads, work.losses, threads)


@launched(parallel=True)
def _own_groups(
    grad, loss, rows, biases, squares, bias_squares, entries, cuts, grads, losses, misses, costs, moves, hidden, weight,
    rate, keep, clip, dice, threads,
):  # fmt: skip
    """Each thread takes all groups through the rows of its owners.

    One thread writes grad and loss itself, summing over the owners in their order; several leave that to add_owners.
    """
    batch = hidden.shape[0]
    alone = threads == 1
    for thread in numba.prange(threads):
        begin, end = thread * OWNERS // threads, (thread + 1) * OWNERS // threads
        out, out_loss = (grad, loss.reshape((1, batch))) if alone else (grads, losses)
        first = 0
        while first < batch:
            last = first + 1
            # The entry nearest to the leaf identifies the leaf.
            while last < batch and last - first < LONGEST and entries[last, 0] == entries[first, 0]:
                last += 1
            _visit(
                out, out_loss, rows, biases, squares, bias_squares, entries, cuts, misses[thread], costs[thread],
                moves, thread, hidden, weight, rate, keep, clip, dice, begin, end, first, last, alone,
            )  # fmt: skip
            first = last


@inlined()
def _visit(
    out, out_loss, rows, biases, squares, bias_squares, entries, cuts, misses, costs, moves, thread, hidden, weight, rate, keep,
    clip, dice, owner, owners, first, last, alone,
):  # fmt: skip
    """Examples first:last at the rows of owners owner:owners: write gradients and losses, move the rows."""
    # Unsigned indices: Numba then leaves out its test for negative ones.
    b, examples = np.uintp(first), np.uintp(last - first)
    begin, end = np.uintp(cuts[first, owner]), np.uintp(cuts[first, owners])
    pitch = (end - begin + np.uintp(WIDE - 1)) // np.uintp(WIDE) * np.uintp(WIDE)
    for e in range(examples):
        for i in range(begin, end, WIDE):
            score(misses, e * pitch + i - begin, rows, hidden, b + e, entries, i, end)
            add_biases(misses, e * pitch + i - begin, biases, entries, b, i, end)
    for e in range(examples):
        for i in range(begin, end, WIDE):
            _judge(misses, costs, e * pitch + i - begin, entries, b, i)
        weigh(misses, e * pitch, e * pitch + end - begin, weight, b + e)
        _lose(out_loss, costs, e * pitch - begin, cuts, b, e, owner, owners, weight, alone)
    _pace(
        moves, thread, misses, pitch, biases, squares, bias_squares, hidden, b, examples, entries, begin, end, rate, clip
    )  # fmt: skip
    batch, width = np.uintp(hidden.shape[0]), hidden.shape[1]
    whole, own = width // LANES * LANES, thrown(dice, b)
    for d in range(0, whole, LANES):
        _collect(out, rows, misses, pitch, begin, cuts, owner, owners, alone, batch, b, examples, entries, d, LANES)
        _move(
            rows, squares, misses, moves, thread, pitch, hidden, b, examples, entries, begin, end, rate, keep, own, d, LANES
        )  # fmt: skip
    if whole < width:
        rest = width - whole
        _collect(out, rows, misses, pitch, begin, cuts, owner, owners, alone, batch, b, examples, entries, whole, rest)
        _move(
            rows, squares, misses, moves, thread, pitch, hidden, b, examples, entries, begin, end, rate, keep, own, whole,
            rest,
        )  # fmt: skip


@inlined()
def _lose(out, costs, at, cuts, b, e, owner, owners, weight, alone):
    """The loss of example b + e: by owner, or summed in the owners' order."""
    total = ZERO
    for o in range(owner, owners):
        loss = ZERO
        for i in range(np.uintp(cuts[b, o]), np.uintp(cuts[b, o + 1])):
            loss += costs[at + i]
        loss = weighed(loss, weight, b + e)
        if alone:
            total += loss
        else:
            out[o, b + e] = loss
    if alone:
        out[0, b + e] = total


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def _judge(misses, costs, at, entries, b, i):
    """Turn WIDE scores at `at` into misses, turn - logistic(score), and write what -log p(turn) of each is."""
    for k in range(WIDE):
        j = at + np.uintp(k)
        misses[j], costs[j] = miss_and_loss(misses[j], entries[b, i + np.uintp(k)] & 1)


@inlined()
def _collect(out, rows, misses, pitch, begin, cuts, owner, owners, alone, batch, b, examples, entries, d, count):
    """Columns d to d + count of the gradients, from the rows as they are: by owner, or summed in the owners' order."""
    zero, one = splat(out.dtype.type(0)), splat(out.dtype.type(1))
    for e in range(examples):
        total = zero
        for o in range(np.uintp(owner), np.uintp(owners)):
            grad = zero
            for i in range(np.uintp(cuts[b, o]), np.uintp(cuts[b, o + 1])):
                miss = splat(-misses[e * pitch + i - begin])
                grad = multiply_add(miss, load_row(rows, entries[b, i] >> 1, d, count), grad)
            if alone:
                total = multiply_add(one, grad, total)
            else:
                store_row(out, o * batch + b + e, d, grad, count)
        if alone:
            store_row(out, b + e, d, total, count)


@inlined()
def _pace(
    moves, thread, misses, pitch, biases, squares, bias_squares, hidden, b, examples, entries, begin, end, rate, clip
):
    """Write by what the move of each row is multiplied, and move the biases; moves None: all by 1."""
    if moves is not None:
        for i in range(begin, end):
            row, pull = entries[b, i] >> 1, ZERO
            for e in range(examples):
                pull += misses[e * pitch + i - begin]
            square = _square(misses, i - begin, pitch, hidden, b, examples, pull, biases)
            push = cut(hidden.dtype.type(1), square, clip)
            move = paced(push, squares, row, square / hidden.dtype.type(size(hidden.shape[1], biases)))
            move_bias(biases, bias_squares, row, push * pull, move * pull, rate)
            moves[thread, i - begin] = move


@inlined()
def _square(misses, place, pitch, hidden, b, examples, pull, biases):
    """The square of the length of a row's gradient, and of its bias's, `pull`."""
    zero, width = splat(hidden.dtype.type(0)), hidden.shape[1]
    found = zero
    for d in range(0, width, LANES):
        part = zero
        for e in range(examples):
            h = load_row(hidden, b + e, d, min(LANES, width - d))
            part = multiply_add(splat(misses[e * pitch + place]), h, part)
        found = multiply_add(part, part, found)
    if biases is None:
        return total(found)
    return total(found) + pull * pull


@inlined()
def _move(
    rows, squares, misses, moves, thread, pitch, hidden, b, examples, entries, begin, end, rate, keep, own, d, count
):
    """Columns d to d + count of the rows."""
    for i in range(begin, end):
        row = entries[b, i] >> 1
        w = load_row(rows, row, d, count)
        step = paced_by(scale_of(rate, squares), moves, thread, i - begin)
        if squares is None:
            w = decayed(w, keep)
            for e in range(examples):
                w = multiply_add(splat(step * misses[e * pitch + i - begin]), load_row(hidden, b + e, d, count), w)
        else:
            g = splat(hidden.dtype.type(0))
            for e in range(examples):
                g = multiply_add(splat(step * misses[e * pitch + i - begin]), load_row(hidden, b + e, d, count), g)
            w = pushed(w, splat(hidden.dtype.type(1)), g, squares, row, d, count, rate, keep)
        put(rows, row, d, w, count, own)
