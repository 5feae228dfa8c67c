"""One tick of a Predictive Vision Model on the CPU: the `Pvm` contract. Memory-bound: 8 bytes a parameter, 16 with momentum.

A unit gathers its inputs, learns from a prediction made some ticks ago, and predicts anew. All units read the world of the tick
before, so they are independent. Learning does not depend on the current prediction, so a matrix row is visited once. The visit
updates the row with the old input and multiplies it with the new one. Only matrices behind the first are read earlier, in
back-propagation; these are small enough to stay in the core's cache until their visit. For several streams a visit is two
products of cpu/vectors/small_gemm.py, which are compute-bound.

While one matrix is computed, the same part of the next unit's matrix is prefetched. Rows are short and unaligned, so the loops
use the masked vectors of cpu/vectors/simd.py, four rows at a time.
"""

from typing import Any

import numba
import numpy as np

from cpu.runtime import memory
from cpu.runtime.compiled import Array, called, inlined, launched
from cpu.runtime.threads import PARTS, shared
from cpu.vectors.activation import CODES, activate, times_slope
from cpu.vectors.online import assign
from cpu.vectors.simd import LINE, add_sums, broadcast, lanes, load, multiply_add, prefetch, store, zeros
from cpu.vectors.small_gemm import asking, move, pack, pull, room
from cpu.vectors.small_gemm import multiply as multiply_many

BITS = 1024  # bits per vector: two of the widest registers, so that four rows fit the register file
SIGNAL, DERIVATIVE, INTEGRAL, ERROR, PAST = (1 << k for k in range(5))
LATERAL, FEEDBACK, RAW = range(3)
AHEAD = 1 << 14  # prefetch distance in weights

# Without reference counts: each is an atomic addition, and a unit takes hundreds of array slices.
kernel = called(_nrt=False, error_model="numpy", fastmath={"reassoc", "contract"})
parallel = launched(error_model="numpy", fastmath={"reassoc", "contract"}, parallel=True)
inner = inlined(fastmath={"reassoc", "contract"})


def plan(layout: Any) -> Any:
    """Returns the layout unchanged."""
    return layout


def show(world: Array, frame: Array, scale: float) -> None:
    """world[b, :F] = scale frame[b]."""
    np.multiply(frame, world.dtype.type(scale), out=world[:, : frame.shape[1]])


def tick(
    state: Any, layout: Any, past: Any, learning: Any, gathering: Any, activation: str, first: int, last: int
) -> None:
    """Lets the units first:last gather their inputs, learn, predict and publish; see the contract."""
    numbers = tuple(map(state.weights.dtype.type, gathering))
    starts = np.append(layout.w_at[layout.layer_at[:-1]], state.weights.size)[first : last + 1]
    shares = np.linspace(starts[0], starts[-1], PARTS * numba.get_num_threads() + 1)  # by parameter count
    cuts = first + np.searchsorted(starts, shares)
    columns = 0 if len(state.tape) == 1 else layout.columns.max()
    packed = memory.empty((len(cuts) - 1, room(len(state.tape), columns)), state.weights.dtype)
    with shared(len(cuts) - 1):  # Numba 0.68 loses writes to a namedtuple's arrays in a parallel loop: pass one by one
        _tick(*state, packed, layout, *past, *learning, numbers, CODES[activation], cuts)


def collect(out: Array, source: Array, index: Array) -> None:
    """out[b, n] = source[b, index[n]]."""
    np.take(source, index, axis=1, out=out, mode="clip")  # "raise" would go through a copy


def spread(out: Array, source: Array, index: Array) -> None:
    """out[b, index[n]] = source[b, n]."""
    out[:, index] = source


@parallel
def _tick(
    world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, packed, layout, world, last, record, before,
    rate, momentum, learns, adapts, predict_first, numbers, code, cuts,
):  # fmt: skip
    for part in numba.prange(cuts.size - 1):
        for u in range(cuts[part], cuts[part + 1]):
            if u + 1 < cuts[part + 1]:
                _ask(tape, record, delta, signals, before, world, layout, u + 1)
            _gather(tape, signals, integral, layout, u, world, last, before, numbers)
            miss[u] = _errors(delta, layout, u, record, signals, before)
            if learns[u]:
                _pull_back(delta, weights, layout, u, record, code)
            speed = rate[u], momentum[u]
            if tape.shape[0] == 1:
                _visit(tape, weights, velocity, layout, u, record, delta, speed, learns[u], predict_first, code)
            else:
                taught = learns[u], predict_first
                _visit_many(tape, weights, velocity, packed[part], layout, u, record, delta, speed, taught, code)
            _publish(world_next, low, high, layout, u, tape, adapts[u])


# Loops run over whole small arrays sliced beforehand: indexing a part of a large array is bounds-checked per number, which
# prevents vectorisation. Constants take the precision of the arrays.


@kernel
def _ask(tape, record, delta, signals, before, world, layout, u):
    """Prefetches the unit's inputs, records and outputs of the first stream; `_visit` prefetches its weights."""
    for i in range(layout.tape_at[u], layout.tape_at[u + 1], lanes(tape, LINE)):
        prefetch(tape, i, LINE)
        prefetch(record, i, LINE)
        prefetch(delta, i, LINE)
    for i in range(layout.signal_at[u], layout.signal_at[u + 1], lanes(tape, LINE)):
        prefetch(signals, i, LINE)
        prefetch(before, i, LINE)
    for k in range(layout.part_at[u], layout.part_at[u + 1]):
        prefetch(world, layout.part_from[k], LINE)
        prefetch(world, layout.part_from[k] + layout.part_size[k] - 1, LINE)


@kernel
def _gather(tape, signals, integral, layout, u, world, last, before, numbers):
    """Writes the unit's signals, and its features and context to the tape."""
    scale, offset, tau, lateral, feedback = numbers
    for b in range(world.shape[0]):
        at = layout.signal_at[u]
        for k in range(layout.part_at[u], layout.part_at[u + 1]):
            source, size = layout.part_from[k], layout.part_size[k]
            _scaled(signals[b, at : at + size], world[b, source : source + size], scale, offset)
            at += size
        _features(tape[b], integral[b], layout, u, last[b], signals[b], before[b], tau)
        for k in range(layout.copy_at[u], layout.copy_at[u + 1]):
            source, place, size = layout.copy_from[k], layout.copy_to[k], layout.copy_size[k]
            kept, seen = tape[b, place : place + size], world[b, source : source + size]
            if layout.copy_kind[k] == RAW:
                assign(kept, seen)
            else:
                factor = lateral if layout.copy_kind[k] == LATERAL else feedback
                _scaled(kept, seen, factor * scale, factor * offset)


@kernel
def _scaled(out, values, scale, offset):
    for i in range(out.size):
        out[i] = scale * values[i] + offset


@kernel
def _features(tape, integral, layout, u, last, signals, before, tau):
    """Writes the features of the signals, block by block, in the order of their bits."""
    one, half = tape.dtype.type(1), tape.dtype.type(0.5)
    block, to, first = layout.block[u], layout.features_at[u], layout.signal_at[u]
    count = layout.signal_at[u + 1] - first
    expected = layout.predicted_at[u] + (count * (layout.steps - 1) if layout.newest_first else 0)
    for at in range(first, first + count, block):
        s, p = signals[at : at + block], before[at : at + block]
        if layout.features & SIGNAL:
            assign(tape[to : to + block], s)
            to += block
        if layout.features & DERIVATIVE:
            _half_difference(tape[to : to + block], s, p)
            to += block
        if layout.features & INTEGRAL:
            total = integral[at : at + block]
            for i in range(block):
                total[i] = tau * total[i] + (one - tau) * s[i]
            assign(tape[to : to + block], total)
            to += block
        if layout.features & ERROR:
            out, guess = tape[to : to + block], last[expected + at - first : expected + at - first + block]
            assign(out, guess)
            if layout.residual_at[u] >= 0:
                rest = expected + at - first - layout.predicted_at[u] + layout.residual_at[u]
                for i in range(block):
                    out[i] += (last[rest + i] - half) / half
            for i in range(block):
                out[i] = min(max(out[i], one - one), one)
            _half_difference(out, s, out)
            to += block
        if layout.features & PAST:
            assign(tape[to : to + block], p)
            to += block


@kernel
def _half_difference(out, a, b):
    """out = (a - b) / 2 + 1/2; out may be b."""
    half = out.dtype.type(0.5)
    for i in range(out.size):
        out[i] = (a[i] - b[i]) * half + half


@kernel
def _errors(delta, layout, u, record, signals, before):
    """Writes the prediction errors of `record` to `delta`, at the predictions' positions; returns the sum of |error|."""
    total = delta.dtype.type(0)
    count = layout.signal_at[u + 1] - layout.signal_at[u]
    seen = slice(layout.signal_at[u], layout.signal_at[u + 1])
    for b in range(delta.shape[0]):
        for step in range(layout.steps):
            newest = step == (0 if layout.newest_first else layout.steps - 1)
            target = signals[b, seen] if newest else before[b, seen]
            first = layout.predicted_at[u] + step * count
            wrong = delta[b, first : first + count]
            guess = record[b, first : first + count]
            for i in range(count):
                wrong[i] = target[i] - guess[i]
            if layout.residual_at[u] < 0:
                for i in range(count):
                    total += abs(wrong[i])
            else:
                rest = layout.residual_at[u] + step * count
                total += _left(delta[b, rest : rest + count], wrong, record[b, rest : rest + count])
            for i in range(min(layout.signed[u] - step * count, count)):
                wrong[i] = np.sign(wrong[i])
    return total


@kernel
def _left(out, wrong, rest):
    """Writes the second net's target, the remaining error mapped to 0..1; returns the sum of what both nets leave."""
    one, half, total = out.dtype.type(1), out.dtype.type(0.5), out.dtype.type(0)
    for i in range(out.size):
        out[i] = (wrong[i] + one) * half - rest[i]
        total += abs(out[i] + out[i])
    return total


@kernel
def _pull_back(delta, weights, layout, u, record, code):
    """Back-propagates from the last dense layer to the second: gradients before the activation of each layer's input."""
    for k in range(layout.layer_at[u + 1] - 1, layout.layer_at[u] - 1, -1):
        rows, columns, pulled = layout.rows[k], layout.columns[k], layout.pulled[k]
        read, wrote = layout.in_at[k], layout.out_at[k]
        writes, reads = slice(wrote, wrote + rows), slice(read, read + pulled)
        for b in range(delta.shape[0]):
            times_slope(delta[b, writes], record[b, writes], code)
        if pulled and delta.shape[0] == 1:
            _transposed(delta[0, reads], weights, layout.w_at[k], columns, delta[0, writes])
        elif pulled:
            after, before = _strip(delta, layout, u, wrote), _strip(delta, layout, u, read)
            pull(before, weights, layout.w_at[k], columns, rows, pulled, after, delta.shape[0])


@kernel
def _visit(tape, weights, velocity, layout, u, record, delta, speed, learns, predict_first, code):
    """Visits all dense layers of the unit in order: updates weights and computes the new outputs."""
    ahead = min(_size(layout, u), AHEAD)
    for k in range(layout.layer_at[u], layout.layer_at[u + 1]):
        at = layout.w_at[k]
        reads = slice(layout.in_at[k], layout.in_at[k] + layout.columns[k])
        writes = slice(layout.out_at[k], layout.out_at[k] + layout.rows[k])
        x, out, old = tape[0, reads], tape[0, writes], record[0, reads]
        if learns:
            _move_and_multiply(out, weights, velocity, at, x, old, delta[:, writes], speed, ahead, predict_first)
        else:
            _multiply(out, weights, at, x, ahead)
        activate(out, code)


@kernel
def _visit_many(tape, weights, velocity, packed, layout, u, record, delta, speed, taught, code):
    """Does the same for several streams."""
    learns, predict_first = taught
    rate, momentum = speed
    batch = tape.shape[0]
    ask = asking(batch, layout.w_at[layout.layer_at[u]] + _size(layout, u), weights)
    for k in range(layout.layer_at[u], layout.layer_at[u + 1]):
        at, rows, columns, wrote = layout.w_at[k], layout.rows[k], layout.columns[k], layout.out_at[k]
        x, out = _strip(tape, layout, u, layout.in_at[k]), _strip(tape, layout, u, wrote)
        old, errors = _strip(record, layout, u, layout.in_at[k]), _strip(delta, layout, u, wrote)
        if learns and not predict_first:
            ask = move(weights, velocity, at, columns, rows, errors, old, batch, rate, momentum, ask)
        pack(packed, x, columns, batch)
        ask = multiply_many(out, weights, velocity, at, columns, rows, packed, batch, ask, None)
        if learns and predict_first:
            ask = move(weights, velocity, at, columns, rows, errors, old, batch, rate, momentum, ask)
        for b in range(batch):
            activate(tape[b, wrote : wrote + rows], code)


@kernel
def _strip(array, layout, u, at):
    """Returns unit u's part of tapes and the like from `at` on, as a strip of small_gemm.py; the next unit's follows."""
    return array.reshape(array.size), at, array.shape[1], layout.tape_at[u + 1] - layout.tape_at[u]


@kernel
def _size(layout, u):
    """Returns the number of weights of a unit."""
    last = layout.layer_at[u + 1] - 1
    return layout.w_at[last] + layout.rows[last] * (layout.columns[last] + 1) - layout.w_at[layout.layer_at[u]]


@kernel
def _publish(world_next, low, high, layout, u, tape, adapts):
    """Writes the unit's hidden vector to the next world, scaled by its range so far if low is not None."""
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


@kernel
def _move_and_multiply(out, weights, velocity, at, x, old, errors, speed, ahead, predict_first):
    """Four rows at a time: matrix += rate delta old^T; out = matrix x + bias with the matrix before or after the update."""
    rate, momentum = speed
    n, last, delta = x.size, out.size - 1, errors[0]
    bias = at + out.size * n
    if predict_first:
        assign(out, weights[bias : bias + out.size])
    _move_biases(weights, velocity, bias, errors, rate, momentum)
    if not predict_first:
        assign(out, weights[bias : bias + out.size])
    for r in range(0, out.size, 4):
        # rows past the last repeat the last row; all are loaded before one is stored, so it is updated once
        numbers = r, min(r + 1, last), min(r + 2, last), min(r + 3, last)
        places, changes, totals = _four_places(at, n, numbers), _four_changes(rate, delta, numbers), _four_zeros(x)
        for i in range(0, n, lanes(x, BITS)):
            now, then = load(x, i, n - i, BITS), load(old, i, n - i, BITS)
            rows = _load_four(weights, places, i, n - i)
            if predict_first:
                totals = _multiply_add_four(rows, now, totals)
            rows = _moved(weights, velocity, places, i, n - i, rows, changes, then, momentum)
            if not predict_first:
                totals = _multiply_add_four(rows, now, totals)
            for place in places:
                prefetch(weights, place + i + ahead, BITS)
                if velocity is not None:
                    prefetch(velocity, place + i + ahead, BITS)
        add_sums(out, r, out.size - r, totals[0], totals[1], totals[2], totals[3])


@kernel
def _multiply(out, weights, at, x, ahead):
    """Does the same for a unit that does not learn, with the sums in the same order."""
    n, last = x.size, out.size - 1
    bias = at + out.size * n
    assign(out, weights[bias : bias + out.size])
    for r in range(0, out.size, 4):
        places, totals = _four_places(at, n, (r, min(r + 1, last), min(r + 2, last), min(r + 3, last))), _four_zeros(x)
        for i in range(0, n, lanes(x, BITS)):
            rows = _load_four(weights, places, i, n - i)
            totals = _multiply_add_four(rows, load(x, i, n - i, BITS), totals)
            for place in places:
                prefetch(weights, place + i + ahead, BITS)
        add_sums(out, r, out.size - r, totals[0], totals[1], totals[2], totals[3])


@kernel
def _transposed(out, weights, at, columns, delta):
    """out = the leading columns of the matrix at `at`, transposed, times delta."""
    for i in range(0, out.size, 2 * lanes(out, BITS)):
        left, right, rest = zeros(out, BITS), zeros(out, BITS), max(out.size - i - lanes(out, BITS), 0)
        for r in range(delta.size):
            place, factor = at + r * columns + i, broadcast(delta[r], BITS)
            left = multiply_add(factor, load(weights, place, out.size - i, BITS), left)
            right = multiply_add(factor, load(weights, place + lanes(out, BITS), rest, BITS), right)
        store(out, i, out.size - i, left)
        store(out, i + lanes(out, BITS), rest, right)


@inner
def _moved(weights, velocity, places, i, count, rows, changes, along, momentum):
    """velocity <- momentum velocity + changes along; returns weights <- rows + velocity; velocity None: no momentum."""
    if velocity is None:
        rows = _multiply_add_four(changes, along, rows)
    else:
        speeds = _multiply_add_four(
            _load_four(velocity, places, i, count), broadcast(momentum, BITS), _four_zeros(weights)
        )
        speeds = _multiply_add_four(changes, along, speeds)
        _store_four(velocity, places, i, count, speeds)
        rows = _multiply_add_four(speeds, broadcast(weights.dtype.type(1), BITS), rows)
    _store_four(weights, places, i, count, rows)
    return rows


@kernel
def _move_biases(weights, velocity, at, delta, rate, momentum):
    """Does the same for the biases at `at`, whose input is 1 in each stream."""
    one, size = weights.dtype.type(1), delta.shape[1]
    biases = weights[at : at + size]
    if velocity is None:
        for b in range(delta.shape[0]):
            _add(biases, delta[b], one, rate)
    else:
        speeds = velocity[at : at + size]
        for b in range(delta.shape[0]):
            _add(speeds, delta[b], one if b else momentum, rate)
        _add(biases, speeds, one, one)


@kernel
def _add(out, values, kept, factor):
    """out = kept out + factor values."""
    for i in range(out.size):
        out[i] = kept * out[i] + factor * values[i]


@inner
def _four_places(at, columns, rows):
    a, b, c, d = rows
    return at + a * columns, at + b * columns, at + c * columns, at + d * columns


@inner
def _four_changes(rate, delta, rows):
    a, b, c, d = rows
    return (
        broadcast(rate * delta[a], BITS),
        broadcast(rate * delta[b], BITS),
        broadcast(rate * delta[c], BITS),
        broadcast(rate * delta[d], BITS),
    )


@inner
def _four_zeros(like):
    return zeros(like, BITS), zeros(like, BITS), zeros(like, BITS), zeros(like, BITS)


@inner
def _load_four(array, places, i, count):
    a, b, c, d = places
    return (
        load(array, a + i, count, BITS),
        load(array, b + i, count, BITS),
        load(array, c + i, count, BITS),
        load(array, d + i, count, BITS),
    )


@inner
def _store_four(array, places, i, count, vectors):
    for k in range(4):
        store(array, places[k] + i, count, vectors[k])


@inner
def _multiply_add_four(vectors, factor, others):
    """vectors factor + others, for each of the four."""
    a, b, c, d = vectors
    e, f, g, h = others
    return (
        multiply_add(a, factor, e),
        multiply_add(b, factor, f),
        multiply_add(c, factor, g),
        multiply_add(d, factor, h),
    )
