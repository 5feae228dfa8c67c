"""One tick of a Predictive Vision Model on the CPU: the `Pvm` contract. Bound by memory, 8 bytes a parameter, 16 with momentum.

A unit gathers what it sees, learns from the prediction that it made some ticks ago, and predicts anew. All units read the world
as the tick before left it, so they are independent. What is learned does not depend on what is predicted now; so a row of a
matrix is visited once: moved along the old input, and multiplied with the new one. Only matrices behind the first are read
before, when errors flow back, and those are small enough to stay in the core's cache until their visit.
"""

import numba
import numpy as np

from cpu.activation import CODES, activate, times_slope
from cpu.vector import add_sums, lanes, load, multiply_add, prefetch, spread, store, zeros

SIGNAL, DERIVATIVE, INTEGRAL, ERROR, PAST = (1 << k for k in range(5))
LATERAL, FEEDBACK, RAW = range(3)
AHEAD = 1 << 14  # weights; those so far behind the ones in work are asked for

kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
parallel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"}, parallel=True)


def plan(layout):
    """The layout as `tick` takes it: as it is."""
    return layout


def tick(
    world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, layout, world, last, record, before,
    rate, momentum, learns, adapts, squeeze, tau, factors, predict_first, activation,
):  # fmt: skip
    """See hybrid/contract.py."""
    number = weights.dtype.type
    scale, offset = squeeze
    numbers = (number(scale), number(offset), number(tau), number(factors[0]), number(factors[1]))
    groups = _groups(layout, weights.size, numba.get_num_threads())
    _tick(
        world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, layout, world, last, record, before,
        rate, momentum, learns, adapts, numbers, predict_first, CODES[activation], groups,
    )  # fmt: skip


def _groups(layout, size, threads):
    """Where to cut the units, so that each thread has about as many parameters."""
    first = np.append(layout.w_at[layout.layer_at[:-1]], size)
    return np.searchsorted(first, np.linspace(0, size, threads + 1))


@parallel
def _tick(
    world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, layout, world, last, record, before,
    rate, momentum, learns, adapts, numbers, predict_first, code, groups,
):  # fmt: skip
    for group in numba.prange(groups.size - 1):
        for u in range(groups[group], groups[group + 1]):
            _gather(tape, signals, integral, layout, u, world, last, before, numbers)
            miss[u] = _errors(delta, layout, u, record, signals, before)
            if learns[u]:
                _pull_back(delta, weights, layout, u, record, code)
            speed = rate[u], momentum[u]
            _visit(tape, weights, velocity, layout, u, record, delta, speed, learns[u], predict_first, code)
            _publish(world_next, low, high, layout, u, tape, adapts[u])


@kernel
def _gather(tape, signals, integral, layout, u, world, last, before, numbers):
    """Write the unit's signals, and its features and context to the tape."""
    scale, offset, tau, lateral, feedback = numbers
    for b in range(world.shape[0]):
        at = layout.signal_at[u]
        for k in range(layout.part_at[u], layout.part_at[u + 1]):
            source, size = layout.part_from[k], layout.part_size[k]
            for i in range(size):
                signals[b, at + i] = scale * world[b, source + i] + offset
            at += size
        _features(tape[b], integral[b], layout, u, last[b], signals[b], before[b], tau)
        for k in range(layout.copy_at[u], layout.copy_at[u + 1]):
            source, place, kind = layout.copy_from[k], layout.copy_to[k], layout.copy_kind[k]
            factor = lateral if kind == LATERAL else feedback
            for i in range(layout.copy_size[k]):
                value = world[b, source + i]
                tape[b, place + i] = value if kind == RAW else factor * (scale * value + offset)


@kernel
def _features(tape, integral, layout, u, last, signals, before, tau):
    """Block by block, the features of the signals, in the order of their bits."""
    one = tape.dtype.type(1)
    half = one / 2
    block, to = layout.block[u], layout.features_at[u]
    count = layout.signal_at[u + 1] - layout.signal_at[u]
    guess = layout.predicted_at[u] + (count * (layout.steps - 1) if layout.newest_first else 0)
    for at in range(layout.signal_at[u], layout.signal_at[u + 1], block):
        s, p = signals[at : at + block], before[at : at + block]
        if layout.features & SIGNAL:
            tape[to : to + block] = s
            to += block
        if layout.features & DERIVATIVE:
            for i in range(block):
                tape[to + i] = (s[i] - p[i]) * half + half
            to += block
        if layout.features & INTEGRAL:
            for i in range(block):
                integral[at + i] = tau * integral[at + i] + (one - tau) * s[i]
                tape[to + i] = integral[at + i]
            to += block
        if layout.features & ERROR:
            first = guess + at - layout.signal_at[u]
            for i in range(block):
                g = last[first + i]
                if layout.residual_at[u] >= 0:
                    g += 2 * last[first + i - layout.predicted_at[u] + layout.residual_at[u]] - one
                tape[to + i] = (s[i] - min(max(g, 0 * one), one)) * half + half
            to += block
        if layout.features & PAST:
            tape[to : to + block] = p
            to += block


@kernel
def _errors(delta, layout, u, record, signals, before):
    """Write the gradient before the activation of the predictions in `record`, without the slope; returns sum |error|."""
    one, total = delta.dtype.type(1), delta.dtype.type(0)
    first, count = layout.signal_at[u], layout.signal_at[u + 1] - layout.signal_at[u]
    guess, rest = layout.predicted_at[u], layout.residual_at[u]
    for b in range(delta.shape[0]):
        for step in range(layout.steps):
            newest = step == (0 if layout.newest_first else layout.steps - 1)
            target = signals if newest else before
            for i in range(count):
                place = step * count + i
                wrong = target[b, first + i] - record[b, guess + place]
                if rest >= 0:  # of what is wrong, moved into 0..1, the second net learns
                    delta[b, rest + place] = (wrong + one) / 2 - record[b, rest + place]
                    total += abs(wrong - 2 * record[b, rest + place] + one)
                else:
                    total += abs(wrong)
                delta[b, guess + place] = wrong if place >= layout.signed[u] else np.sign(wrong)
    return total


@kernel
def _pull_back(delta, weights, layout, u, record, code):
    """From the last dense layer to the second: the gradient before the activation of what it read."""
    for k in range(layout.layer_at[u + 1] - 1, layout.layer_at[u] - 1, -1):
        rows, columns, pulled = layout.rows[k], layout.columns[k], layout.pulled[k]
        read, wrote = layout.in_at[k], layout.out_at[k]
        for b in range(delta.shape[0]):
            out = delta[b, wrote : wrote + rows]
            times_slope(out, record[b, wrote : wrote + rows], code)
            if pulled:
                _transposed(delta[b, read : read + pulled], weights, layout.w_at[k], columns, out)


@kernel
def _transposed(out, weights, at, columns, delta):
    """out = the leading columns of the matrix at `at`, transposed, times delta."""
    for i in range(0, out.size, lanes(out)):
        even, odd = zeros(out), zeros(out)
        for r in range(0, delta.size - 1, 2):
            place = at + r * columns + i
            even = multiply_add(spread(delta[r]), load(weights, place, out.size - i), even)
            odd = multiply_add(spread(delta[r + 1]), load(weights, place + columns, out.size - i), odd)
        if delta.size % 2:
            r = delta.size - 1
            even = multiply_add(spread(delta[r]), load(weights, at + r * columns + i, out.size - i), even)
        store(out, i, out.size - i, multiply_add(spread(out.dtype.type(1)), even, odd))


@kernel
def _visit(tape, weights, velocity, layout, u, record, delta, speed, learns, predict_first, code):
    """All dense layers of the unit in order: what they learn and what they compute now."""
    last = layout.layer_at[u + 1] - 1
    size = layout.w_at[last] + layout.rows[last] * (layout.columns[last] + 1) - layout.w_at[layout.layer_at[u]]
    ahead = min(size, AHEAD)
    for k in range(layout.layer_at[u], layout.layer_at[u + 1]):
        rows, columns, at = layout.rows[k], layout.columns[k], layout.w_at[k]
        reads = slice(layout.in_at[k], layout.in_at[k] + columns)
        writes = slice(layout.out_at[k], layout.out_at[k] + rows)
        one = tape.shape[0] == 1
        if learns and one:
            _move_and_multiply(
                tape[0, writes],
                weights,
                velocity,
                at,
                tape[0, reads],
                record[0, reads],
                delta[0, writes],
                speed,
                ahead,
                predict_first,
            )
        else:
            if learns and not predict_first:
                _move(weights, velocity, at, record, reads, delta, writes, speed)
            for b in range(tape.shape[0]):
                _multiply(tape[b, writes], weights, at, tape[b, reads])
            if learns and predict_first:
                _move(weights, velocity, at, record, reads, delta, writes, speed)
        for b in range(tape.shape[0]):
            activate(tape[b, writes], code)


@kernel
def _move_and_multiply(out, weights, velocity, at, x, old, delta, speed, ahead, predict_first):
    """Four rows at a time: matrix += rate delta old^T; out = matrix x + bias with the matrix before that or after it."""
    rate, momentum = speed
    n, last = x.size, out.size - 1
    bias = at + out.size * n
    if predict_first:
        out[:] = weights[bias : bias + out.size]
    _move_bias(weights, velocity, bias, delta, rate, momentum)
    if not predict_first:
        out[:] = weights[bias : bias + out.size]
    for r in range(0, out.size, 4):
        # rows past the last are the last again, which must not move twice: their change is 0
        count = min(4, out.size - r)
        total0, total1, total2, total3 = zeros(x), zeros(x), zeros(x), zeros(x)
        p0, p1 = at + r * n, at + min(r + 1, last) * n
        p2, p3 = at + min(r + 2, last) * n, at + min(r + 3, last) * n
        c0, c1 = rate * delta[r], rate * delta[min(r + 1, last)]
        c2, c3 = rate * delta[min(r + 2, last)], rate * delta[min(r + 3, last)]
        for i in range(0, n, lanes(x)):
            now, then = load(x, i, n - i), load(old, i, n - i)
            total0 = _step(weights, velocity, p0 + i, n - i, now, then, c0, momentum, total0, predict_first)
            if count > 1:
                total1 = _step(weights, velocity, p1 + i, n - i, now, then, c1, momentum, total1, predict_first)
            if count > 2:
                total2 = _step(weights, velocity, p2 + i, n - i, now, then, c2, momentum, total2, predict_first)
            if count > 3:
                total3 = _step(weights, velocity, p3 + i, n - i, now, then, c3, momentum, total3, predict_first)
            for row in (p0, p1, p2, p3):
                _prefetch(weights, row + i + ahead, lanes(x))
        add_sums(out, r, count, total0, total1, total2, total3)


@kernel
def _prefetch(array, index, count):
    """The cache lines of a vector of `count` numbers."""
    for line in range(4):
        prefetch(array, index + line * (count // 4))


@kernel
def _step(weights, velocity, place, count, now, then, change, momentum, total, predict_first):
    """One vector of one row."""
    row = load(weights, place, count)
    if predict_first:
        total = multiply_add(row, now, total)
    if velocity is None:
        row = multiply_add(spread(change), then, row)
    else:
        zero = zeros(weights)
        speed = multiply_add(spread(change), then, multiply_add(spread(momentum), load(velocity, place, count), zero))
        store(velocity, place, count, speed)
        row = multiply_add(spread(weights.dtype.type(1)), speed, row)
    store(weights, place, count, row)
    if not predict_first:
        total = multiply_add(row, now, total)
    return total


@kernel
def _move_bias(weights, velocity, bias, delta, rate, momentum):
    for r in range(delta.size):
        if velocity is None:
            weights[bias + r] += rate * delta[r]
        else:
            velocity[bias + r] = momentum * velocity[bias + r] + rate * delta[r]
            weights[bias + r] += velocity[bias + r]


@kernel
def _multiply(out, weights, at, x):
    """out = matrix x + bias."""
    n, last = x.size, out.size - 1
    out[:] = weights[at + out.size * n : at + out.size * (n + 1)]
    for r in range(0, out.size, 4):  # rows past the last are the last again, and not written
        p0, p1 = at + r * n, at + min(r + 1, last) * n
        p2, p3 = at + min(r + 2, last) * n, at + min(r + 3, last) * n
        total0, total1, total2, total3 = zeros(x), zeros(x), zeros(x), zeros(x)
        for i in range(0, n, lanes(x)):
            now = load(x, i, n - i)
            total0 = multiply_add(load(weights, p0 + i, n - i), now, total0)
            total1 = multiply_add(load(weights, p1 + i, n - i), now, total1)
            total2 = multiply_add(load(weights, p2 + i, n - i), now, total2)
            total3 = multiply_add(load(weights, p3 + i, n - i), now, total3)
        add_sums(out, r, out.size - r, total0, total1, total2, total3)


@kernel
def _move(weights, velocity, at, record, reads, delta, writes, speed):
    """matrix and bias += rate times the sum over the streams of delta x^T."""
    rate, momentum = speed
    n, rows = reads.stop - reads.start, writes.stop - writes.start
    keep = velocity is not None
    for r in range(rows):
        for i in range(0, n, lanes(weights)):
            change = zeros(weights)
            for b in range(record.shape[0]):
                x = load(record[b], reads.start + i, n - i)
                change = multiply_add(spread(rate * delta[b, writes.start + r]), x, change)
            place = at + r * n + i
            if keep:
                change = multiply_add(spread(momentum), load(velocity, place, n - i), change)
                store(velocity, place, n - i, change)
            row = load(weights, place, n - i)
            store(weights, place, n - i, multiply_add(spread(weights.dtype.type(1)), change, row))
        total = weights.dtype.type(0)
        for b in range(record.shape[0]):
            total += delta[b, writes.start + r]
        place = at + rows * n + r
        if keep:
            velocity[place] = momentum * velocity[place] + rate * total
            weights[place] += velocity[place]
        else:
            weights[place] += rate * total


@kernel
def _publish(world_next, low, high, layout, u, tape, adapts):
    """Write the unit's hidden vector to the next world, as it is or, where low is not None, by its range so far."""
    least = world_next.dtype.type(1e-6)
    at, size = layout.hidden_at[u], layout.hidden[u]
    for b in range(tape.shape[0]):
        for i in range(size):
            value, to = tape[b, at + i], layout.published_at[u] + i
            if low is not None:
                if adapts:
                    low[b, to] = min(value, low[b, to]) + least
                    high[b, to] = max(value, high[b, to]) - least
                value = (value - low[b, to]) / (high[b, to] - low[b, to])
            world_next[b, to] = value


def collect(out, source, index):
    """out[b, n] = source[b, index[n]]."""
    np.take(source, index, axis=1, out=out, mode="clip")  # "raise" would go through a copy
