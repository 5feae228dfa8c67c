"""A matrix visited once: each row is moved along an old input and multiplied with a new one. Four rows at a time.

While one matrix is computed, the same place in the matrix of the next unit is prefetched. Rows are short and start anywhere,
so the loops use the masked vectors of cpu/simd.py.
"""

from cpu.compiled import called, inlined
from cpu.online import assign
from cpu.simd import add_sums, lanes, load, multiply_add, prefetch, spread, store, zeros

BITS = 1024  # of a vector: two of the widest registers, so that those of four rows leave room

kernel = called(_nrt=False, error_model="numpy", fastmath={"reassoc", "contract"})
inner = inlined(fastmath={"reassoc", "contract"})


@kernel
def move_and_multiply(out, weights, velocity, at, x, old, errors, speed, ahead, predict_first):
    """Four rows at a time: matrix += rate delta old^T; out = matrix x + bias with the matrix before that or after it."""
    rate, momentum = speed
    n, last, delta = x.size, out.size - 1, errors[0]
    bias = at + out.size * n
    if predict_first:
        assign(out, weights[bias : bias + out.size])
    move_biases(weights, velocity, bias, errors, rate, momentum)
    if not predict_first:
        assign(out, weights[bias : bias + out.size])
    for r in range(0, out.size, 4):
        # rows past the last are the last again; all are loaded before one is stored, so it moves once
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
def multiply(out, weights, at, x, ahead):
    """The same for a unit that does not learn, with the sums in the same order."""
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
def transposed(out, weights, at, columns, delta):
    """out = the leading columns of the matrix at `at`, transposed, times delta."""
    for i in range(0, out.size, 2 * lanes(out, BITS)):
        left, right, rest = zeros(out, BITS), zeros(out, BITS), max(out.size - i - lanes(out, BITS), 0)
        for r in range(delta.size):
            place, factor = at + r * columns + i, spread(delta[r], BITS)
            left = multiply_add(factor, load(weights, place, out.size - i, BITS), left)
            right = multiply_add(factor, load(weights, place + lanes(out, BITS), rest, BITS), right)
        store(out, i, out.size - i, left)
        store(out, i + lanes(out, BITS), rest, right)


@inner
def _four_places(at, columns, rows):
    a, b, c, d = rows
    return at + a * columns, at + b * columns, at + c * columns, at + d * columns


@inner
def _four_changes(rate, delta, rows):
    a, b, c, d = rows
    return (
        spread(rate * delta[a], BITS),
        spread(rate * delta[b], BITS),
        spread(rate * delta[c], BITS),
        spread(rate * delta[d], BITS),
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


@inner
def _moved(weights, velocity, places, i, count, rows, changes, along, momentum):
    """velocity <- momentum velocity + changes along; weights <- rows + velocity, which are returned; None: no momentum."""
    if velocity is None:
        rows = _multiply_add_four(changes, along, rows)
    else:
        speeds = _multiply_add_four(
            _load_four(velocity, places, i, count), spread(momentum, BITS), _four_zeros(weights)
        )
        speeds = _multiply_add_four(changes, along, speeds)
        _store_four(velocity, places, i, count, speeds)
        rows = _multiply_add_four(speeds, spread(weights.dtype.type(1), BITS), rows)
    _store_four(weights, places, i, count, rows)
    return rows


@kernel
def move_biases(weights, velocity, at, delta, rate, momentum):
    """The same of the biases at `at`, whose input is a 1 in each stream."""
    one, size = weights.dtype.type(1), delta.shape[1]
    biases = weights[at : at + size]
    if velocity is None:
        for b in range(delta.shape[0]):
            add(biases, delta[b], one, rate)
    else:
        speeds = velocity[at : at + size]
        for b in range(delta.shape[0]):
            add(speeds, delta[b], one if b else momentum, rate)
        add(biases, speeds, one, one)


@kernel
def add(out, values, kept, factor):
    """out = kept out + factor values."""
    for i in range(out.size):
        out[i] = kept * out[i] + factor * values[i]
