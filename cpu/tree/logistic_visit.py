"""One example at its rows, each a logistic regression: the inner kernels of cpu/tree/logistic_rows.py, inlined into its loops.

For a row w with the turn of the example's list: miss = turn - logistic(w . h), times the example's weight, if any. The update
of the row is a multiple of h: the error times the rate, or a factor by cpu/output/rule.py.
"""

import numpy as np

from cpu.output.rule import length_squared, move_bias, paced, pushed, scale_of, size, with_bias
from cpu.runtime.compiled import inlined
from cpu.vectors.activation import ZERO, miss_and_loss
from cpu.vectors.simd import LANES, add, load_row, multiply_add, splat, store_row, store_totals, total, totals

WIDE = 16  # scores judged at a time: the compiler vectorises a loop of 16, but not one of 4


@inlined()
def judge(misses, costs, rows, biases, hidden, b, entries, first, last, weight):
    """Writes misses[first:last] and costs[first:last], -log p(turn), of example b at entries[b, first:last]."""
    # Unsigned indices: Numba then omits its test for negative ones, which costs more here than the arithmetic.
    b, first, last = np.uintp(b), np.uintp(first), np.uintp(last)
    for i in range(first, last, WIDE):
        score(misses, i, rows, hidden, b, entries, b, i, last)
        add_biases(misses, i, biases, entries, b, i, last)
        compare(misses, costs, entries, b, i)
    weigh(misses, first, last, weight, b)


@inlined()
def cost(costs, thread, first, last):
    """Returns the sum of costs[thread, first:last]."""
    sums = ZERO
    for i in range(first, last, WIDE):
        sums += total(load_row(costs, thread, i, min(WIDE, last - i)))
    return sums


@inlined()
def move(
    out, part, fresh, rows, biases, squares, bias_squares, misses, moves, steps, hidden, b, entries, first, last, rate,
):  # fmt: skip
    """Updates the distinct rows at entries[b, first:last] of example b; adds their gradient to out[part], or writes it if
    fresh.

    misses  of the entries; steps, moves: scratch; moves None: steps is misses
    """
    b, part, first, last = np.uintp(b), np.uintp(part), np.uintp(first), np.uintp(last)
    _pace(moves, steps, misses, biases, squares, bias_squares, hidden, b, entries, first, last, rate)
    scale = scale_of(rate, squares)
    width = hidden.shape[1]
    whole = width // LANES * LANES
    wide = width // (4 * LANES) * (4 * LANES)
    for d in range(0, wide, 4 * LANES):
        _move_wide(out, part, fresh, rows, squares, misses, steps, hidden, b, entries, first, last, scale, rate, d)
    for d in range(wide, whole, LANES):
        _move(out, part, fresh, rows, squares, misses, steps, hidden, b, entries, first, last, scale, rate, d, LANES)
    if whole < width:
        _move(
            out, part, fresh, rows, squares, misses, steps, hidden, b, entries, first, last, scale, rate, whole,
            width - whole,
        )  # fmt: skip


@inlined()
def forget(out, part):
    """out[part] = 0."""
    for d in range(0, out.shape[1], LANES):
        store_row(out, part, d, splat(out.dtype.type(0)), min(LANES, out.shape[1] - d))


@inlined()
def score(scores, at, table, vectors, v, entries, e, i, last):
    """scores[at : at + WIDE] = vectors[v] . table[entry >> 1] of entries[e, i] and on; those past the last are never read."""
    q0 = _four_scores(scores, table, vectors, v, entries, e, i, last)
    q1 = q2 = q3 = q0
    if i + np.uintp(4) < last:
        q1 = _four_scores(scores, table, vectors, v, entries, e, i + np.uintp(4), last)
    if i + np.uintp(8) < last:
        q2 = _four_scores(scores, table, vectors, v, entries, e, i + np.uintp(8), last)
    if i + np.uintp(12) < last:
        q3 = _four_scores(scores, table, vectors, v, entries, e, i + np.uintp(12), last)
    store_totals(scores, at, q0, q1, q2, q3)


@inlined()
def _four_scores(scores, table, vectors, v, entries, e, i, last):
    """Computes four scores: independent sums hide latency. Scores past the last repeat the last row."""
    end = last - np.uintp(1)
    r0 = entries[e, i] >> 1
    r1 = entries[e, min(i + np.uintp(1), end)] >> 1
    r2 = entries[e, min(i + np.uintp(2), end)] >> 1
    r3 = entries[e, min(i + np.uintp(3), end)] >> 1
    s0 = s1 = s2 = s3 = splat(scores.dtype.type(0))
    width = vectors.shape[1]
    whole = width // LANES * LANES
    for d in range(0, whole, LANES):
        vector = load_row(vectors, v, d, LANES)
        s0 = multiply_add(load_row(table, r0, d, LANES), vector, s0)
        s1 = multiply_add(load_row(table, r1, d, LANES), vector, s1)
        s2 = multiply_add(load_row(table, r2, d, LANES), vector, s2)
        s3 = multiply_add(load_row(table, r3, d, LANES), vector, s3)
    if whole < width:
        rest = width - whole
        vector = load_row(vectors, v, whole, rest)
        s0 = multiply_add(load_row(table, r0, whole, rest), vector, s0)
        s1 = multiply_add(load_row(table, r1, whole, rest), vector, s1)
        s2 = multiply_add(load_row(table, r2, whole, rest), vector, s2)
        s3 = multiply_add(load_row(table, r3, whole, rest), vector, s3)
    return totals(s0, s1, s2, s3)


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def compare(misses, costs, entries, e, i):
    """Turns WIDE scores into errors, turn - logistic(score), and costs, -log p(turn).

    This includes those past the last, so that the compiler vectorises the loop.
    """
    for k in range(WIDE):
        j = i + np.uintp(k)
        misses[j], costs[j] = miss_and_loss(misses[j], entries[e, j] & 1)


@inlined()
def add_biases(scores, at, biases, entries, b, i, last):
    """Adds the biases of up to WIDE entries from i on to the scores from `at` on."""
    if biases is not None:
        for k in range(min(np.uintp(WIDE), last - i)):
            scores[at + np.uintp(k)] += biases[entries[b, i + np.uintp(k)] >> 1]


@inlined()
def weigh(misses, first, last, weight, b):
    """Multiplies misses[first:last] by the weight of example b."""
    if weight is not None:
        for i in range(first, last):
            misses[i] *= weight[b]


@inlined()
def weighed(loss, weight, b):
    """Returns the loss of example b, or a part of it, times its weight."""
    if weight is None:
        return loss
    return loss * weight[b]


@inlined()
def _pace(moves, steps, misses, biases, squares, bias_squares, hidden, b, entries, first, last, rate):
    """Writes each row's update factor along h, in units of the rate, and updates biases; moves None: factors are the errors."""
    if moves is not None:
        mean = with_bias(length_squared(hidden, b), biases) / hidden.dtype.type(size(hidden.shape[1], biases))
        for i in range(first, last):
            row = entries[b, i] >> 1
            steps[i] = paced(misses[i], squares, row, mean)
            move_bias(biases, bias_squares, row, misses[i], steps[i], rate)


@inlined()
def _move(out, part, fresh, rows, squares, misses, steps, hidden, b, entries, first, last, scale, rate, d, count):
    """Updates columns d to d + count of the gradient and of all rows."""
    grad = splat(out.dtype.type(0))
    h = multiply_add(load_row(hidden, b, d, count), splat(scale), grad)
    for i in range(first, last):
        row = entries[b, i] >> 1
        w = load_row(rows, row, d, count)
        grad = multiply_add(splat(-misses[i]), w, grad)
        store_row(rows, row, d, pushed(w, splat(steps[i]), h, squares, row, d, count, rate), count)
    _give(out, part, fresh, d, grad, count)


@inlined()
def _move_wide(out, part, fresh, rows, squares, misses, steps, hidden, b, entries, first, last, scale, rate, d):
    """Does the same for 4 LANES columns: the address of a row is computed once for all of them."""
    d1, d2, d3 = d + LANES, d + 2 * LANES, d + 3 * LANES
    g0 = g1 = g2 = g3 = splat(out.dtype.type(0))
    step = splat(scale)
    h0 = multiply_add(load_row(hidden, b, d, LANES), step, g0)
    h1 = multiply_add(load_row(hidden, b, d1, LANES), step, g0)
    h2 = multiply_add(load_row(hidden, b, d2, LANES), step, g0)
    h3 = multiply_add(load_row(hidden, b, d3, LANES), step, g0)
    for i in range(first, last):
        row = entries[b, i] >> 1
        push, back = splat(steps[i]), splat(-misses[i])
        w0, w1 = load_row(rows, row, d, LANES), load_row(rows, row, d1, LANES)
        w2, w3 = load_row(rows, row, d2, LANES), load_row(rows, row, d3, LANES)
        g0, g1 = multiply_add(back, w0, g0), multiply_add(back, w1, g1)
        g2, g3 = multiply_add(back, w2, g2), multiply_add(back, w3, g3)
        store_row(rows, row, d, pushed(w0, push, h0, squares, row, d, LANES, rate), LANES)
        store_row(rows, row, d1, pushed(w1, push, h1, squares, row, d1, LANES, rate), LANES)
        store_row(rows, row, d2, pushed(w2, push, h2, squares, row, d2, LANES, rate), LANES)
        store_row(rows, row, d3, pushed(w3, push, h3, squares, row, d3, LANES, rate), LANES)
    _give(out, part, fresh, d, g0, LANES)
    _give(out, part, fresh, d1, g1, LANES)
    _give(out, part, fresh, d2, g2, LANES)
    _give(out, part, fresh, d3, g3, LANES)


@inlined()
def _give(out, part, fresh, d, grad, count):
    """out[part, d : d + count] = or += grad."""
    before = splat(out.dtype.type(0))
    if not fresh:
        before = load_row(out, part, d, count)
    store_row(out, part, d, add(before, grad), count)
