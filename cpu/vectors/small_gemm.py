"""Products of one unit's small matrices with a batch, faster here than in a BLAS.

For such a product a BLAS spends much time on shape dispatch and copies. Here a tile of the result (cpu/vectors/tile.py) stays
in registers while all its terms are added. This reached 160 of a core's 190 GFLOP/s with all data in its cache. A dense layer
needs three products of a matrix (R, N) of weights whose biases follow it:

    multiply  out[b, r] = bias[r] + sum over n of matrix[r, n] x[b, n]: 8 rows by 8 examples. `pack` first reorders x: four
              neighbours of one example, four of the next. So no number moves within a vector, and lanes of one sum are added
              once, at the end. A batch that is no multiple of 8 is zero-padded.
    pull      out[b, n] = sum over r of delta[b, r] matrix[r, n]: 4 examples by 4 vectors of columns
    move      matrix += rate sum over b of delta[b, r] x[b, n], and the biases: 4 rows by 4 vectors of columns. Weights, and
              velocities with momentum, are read and written once.

Rows of a batch are passed as a strip: a tuple (1-D array, start of the first row, distance of rows, distance to the next unit's
data). The next unit's data is prefetched during the products, since only so many lines per microsecond can be in flight. `ask`
holds the position of the next weights to prefetch, and is passed from product to product. The order of sums depends on sizes
alone.
"""

from cpu.runtime.compiled import called, inlined
from cpu.vectors.simd import LINE, broadcast, lanes, load, multiply_add, prefetch, store, zeros
from cpu.vectors.tile import (
    BITS,
    add_products,
    columns,
    empty_tile,
    four,
    fours,
    load_tile,
    numbers,
    scale_and_add,
    store_sums,
    store_tile,
)

kernel = called(_nrt=False, error_model="numpy", fastmath={"reassoc", "contract"})
inner = inlined(error_model="numpy", fastmath={"reassoc", "contract"})


def room(batch: int, columns: int) -> int:
    """Returns the maximum count of numbers that `pack` writes, for any dtype."""
    return -(-batch // 8) * 8 * (-(-columns // 4) * 4)


@kernel
def asking(batch, at, array):
    """Returns the first weights to prefetch and the stride per step that prefetches as many as are computed.

    All products of R N weights take about R N batch / 128 steps.
    """
    return at, min(max(128 // batch, 1), lanes(array, LINE))


@kernel
def pack(packed, x, n, batch):
    """Packs rows of n numbers for `multiply`; packed is an aligned 1-D array, large enough for `room`."""
    array, at, pitch, _ = x
    wide = 2 * lanes(packed, BITS)  # numbers per group of examples, for four columns
    examples = wide // 4
    for b in range(-(-batch // examples) * examples):
        to = b // examples * _whole(n, wide) + b % examples * 4
        count, begin = n if b < batch else 0, at + b * pitch
        for i in range(0, n - 3, 4):
            store(packed, to, 4, four(array, begin + i, min(count, 4)))
            to += wide
        if n % 4:
            store(packed, to, 4, four(array, begin + n - n % 4, min(count, n % 4)))


@kernel
def multiply(out, weights, velocity, at, n, rows, packed, batch, ask, also):
    """Writes out, see above; `also`, if not None, is prefetched at the next write position of `out`. Returns ask."""
    array, out_at, pitch, ahead = out
    wide = 2 * lanes(packed, BITS)
    bias = at + rows * n
    for r in range(0, rows, 8):
        left, place = rows - r, at + r * n
        for b in range(0, batch, wide // 4):
            begin, to, examples = b * 4 // wide * _whole(n, wide), out_at + b * pitch + r, batch - b
            for e in range(min(examples, wide // 4)):
                prefetch(array, to + e * pitch + ahead, LINE)
                if also is not None:
                    prefetch(also, to + e * pitch + ahead, LINE)
            if left > 4:
                eight, ask = _sum(empty_tile(weights, 16), weights, velocity, place, n, left, packed, begin, ask)
                store_sums(array, to, pitch, examples, left, weights, bias + r, eight)
            else:
                few, ask = _sum(empty_tile(weights, 8), weights, velocity, place, n, left, packed, begin, ask)
                store_sums(array, to, pitch, examples, left, weights, bias + r, few)
    return ask


@inner
def _whole(n, wide):
    """Returns the numbers of a group of examples in `packed`."""
    return (n + 3) // 4 * wide


@inner
def _sum(tile, weights, velocity, place, n, left, packed, begin, ask):
    """Returns the tile of the rows at `place`, `left` of which exist, and of the group of examples at `begin`; and ask."""
    wide = 2 * lanes(packed, BITS)
    for i in range(0, n - 3, 4):
        ask = _asked(weights, velocity, ask)
        tile = add_products(tile, fours(weights, place + i, n, left, 4, tile), columns(packed, begin, wide, 2))
        begin += wide
    if n % 4:
        rest = fours(weights, place + n - n % 4, n, left, n % 4, tile)
        tile = add_products(tile, rest, columns(packed, begin, wide, 2))
    return tile, ask


@inner
def _asked(weights, velocity, ask):
    at, pace = ask
    prefetch(weights, at, LINE)
    if velocity is not None:
        prefetch(velocity, at, LINE)
    return at + pace, pace


@kernel
def pull(out, weights, at, n, rows, pulled, delta, batch):
    """Writes the first `pulled` columns of out, see above."""
    for i in range(0, pulled, 4 * lanes(weights, BITS)):
        for b in range(0, batch, 4):
            if pulled - i > 2 * lanes(weights, BITS):
                _pull(empty_tile(weights, 16), out, weights, at + i, n, rows, pulled - i, delta, b, i, batch - b)
            else:
                _pull(empty_tile(weights, 8), out, weights, at + i, n, rows, pulled - i, delta, b, i, batch - b)


@inner
def _pull(tile, out, weights, at, n, rows, count, delta, b, i, left):
    """Writes the tile of four examples from b on, `left` of which exist, and the columns from i on."""
    array, out_at, out_pitch, _ = out
    wrong, wrong_at, pitch, _ = delta
    begin = wrong_at + b * pitch
    for r in range(rows):
        tile = add_products(tile, numbers(wrong, begin + r, pitch, left), columns(weights, at + r * n, count, tile))
    store_tile(array, out_at + b * out_pitch + i, out_pitch, left, count, tile)


@kernel
def move(weights, velocity, at, n, rows, delta, x, batch, rate, momentum, ask):
    """Updates the matrix at `at` and its biases, see above; velocity None: no momentum. Returns ask."""
    speed = rate, momentum
    for i in range(0, n, 4 * lanes(weights, BITS)):
        for r in range(0, rows, 4):
            if n - i > 2 * lanes(weights, BITS):
                ask = _move(empty_tile(weights, 16), weights, velocity, at, n, rows, r, i, delta, x, batch, speed, ask)
            else:
                ask = _move(empty_tile(weights, 8), weights, velocity, at, n, rows, r, i, delta, x, batch, speed, ask)
    _move_biases(weights, velocity, at + rows * n, rows, delta, batch, speed)
    return ask


@inner
def _move(zero, weights, velocity, at, n, rows, r, i, delta, x, batch, speed, ask):
    """Updates the tile of four rows from r on and of the columns from i on."""
    wrong, wrong_at, pitch, ahead = delta
    seen, seen_at, seen_pitch, seen_ahead = x
    d, s, line = wrong_at + r, seen_at + i, seen_at + 4 * r + seen_ahead
    tile, left, count = zero, rows - r, n - i
    for _ in range(batch):
        ask = _asked(weights, velocity, ask)
        prefetch(wrong, d + ahead, LINE)
        if i == 0:
            prefetch(seen, line, LINE)
        tile = add_products(tile, numbers(wrong, d, 1, left), columns(seen, s, count, tile))
        d, s, line = d + pitch, s + seen_pitch, line + seen_pitch
    rate, momentum = broadcast(speed[0], BITS), broadcast(speed[1], BITS)
    place = at + r * n + i
    tile = scale_and_add(tile, rate, _before(zero, weights, velocity, place, n, left, count, momentum))
    if velocity is not None:
        store_tile(velocity, place, n, left, count, tile)
        one = broadcast(weights.dtype.type(1), BITS)
        tile = scale_and_add(tile, one, load_tile(weights, place, n, left, count, tile))
    store_tile(weights, place, n, left, count, tile)
    return ask


@inner
def _before(zero, weights, velocity, place, n, left, count, momentum):
    """Returns the addend of the products: the weights, or the velocities times the momentum."""
    if velocity is None:
        return load_tile(weights, place, n, left, count, zero)
    return scale_and_add(load_tile(velocity, place, n, left, count, zero), momentum, zero)


@inner
def _move_biases(weights, velocity, at, rows, delta, batch, speed):
    wrong, wrong_at, pitch, _ = delta
    one = broadcast(weights.dtype.type(1), BITS)
    for r in range(0, rows, lanes(weights, BITS)):
        total, left = zeros(weights, BITS), rows - r
        for b in range(batch):
            total = multiply_add(one, load(wrong, wrong_at + b * pitch + r, left, BITS), total)
        rate, old = broadcast(speed[0], BITS), load(weights, at + r, left, BITS)
        if velocity is None:
            store(weights, at + r, left, multiply_add(rate, total, old))
        else:
            kept = load(velocity, at + r, left, BITS)
            kept = multiply_add(rate, total, multiply_add(broadcast(speed[1], BITS), kept, zeros(weights, BITS)))
            store(velocity, at + r, left, kept)
            store(weights, at + r, left, multiply_add(one, kept, old))
