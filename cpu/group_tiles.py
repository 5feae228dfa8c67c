"""The products of small matrices of a group, see cpu/groups.py: tiles of two or four rows whose sums stay in registers.

Hidden vectors and rows (nodes) lie side by side in an array of one dimension, `columns` numbers from one to the next: whole
vectors, with zeros after the last column. misses and costs have `pitch` numbers an example: one a node, and some that
nobody reads, up to a multiple of four.
"""

import numpy as np

from cpu.compiled import inlined
from cpu.dots import store_dots
from cpu.simd import LANES, add, lanes, load, load_row, multiply, multiply_add, spread, store, store_row, zeros

DOT = 512  # bits of the vectors of a dot product: eight sums, in a register each
TILE = 2048  # bits of the columns of a tile: with two rows, eight registers of the widest kind


@inlined()
def copy(tiles, nodes, columns, hidden, b, examples, rows, entries, head, begin, end):
    """The hidden vectors, and at `nodes` the rows, side by side, zeros at the ends."""
    for d in range(0, columns, LANES):
        count = max(min(LANES, hidden.shape[1] - d), 0)
        for e in range(examples):
            store(tiles, e * columns + d, LANES, load_row(hidden, b + e, d, count))
        for i in range(begin, end):
            store(tiles, nodes + (i - begin) * columns + d, LANES, load_row(rows, entries[head, i] >> 1, d, count))


@inlined()
def eight_dots(misses, costs, tiles, nodes, columns, width, e, n, pitch, entries, head, begin):
    """The scores of two examples at four nodes, and in costs the turns; nobody reads those past the last."""
    s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = zeros(tiles, DOT)
    here, there, count = e * columns, nodes + n * columns, lanes(tiles, DOT)
    for d in range(0, width, count):
        h, k = load(tiles, here + d, count, DOT), load(tiles, here + columns + d, count, DOT)
        w0, w1 = load(tiles, there + d, count, DOT), load(tiles, there + columns + d, count, DOT)
        w2, w3 = load(tiles, there + 2 * columns + d, count, DOT), load(tiles, there + 3 * columns + d, count, DOT)
        s0, s1, s2, s3 = (
            multiply_add(h, w0, s0),
            multiply_add(h, w1, s1),
            multiply_add(h, w2, s2),
            multiply_add(h, w3, s3),
        )
        t0, t1, t2, t3 = (
            multiply_add(k, w0, t0),
            multiply_add(k, w1, t1),
            multiply_add(k, w2, t2),
            multiply_add(k, w3, t3),
        )
    store_dots(misses, e * pitch + n, pitch, s0, s1, s2, s3, t0, t1, t2, t3)
    for i in range(4):
        turn = entries[head, begin + n + np.uintp(i)] & 1
        costs[e * pitch + n + np.uintp(i)] = costs[(e + np.uintp(1)) * pitch + n + np.uintp(i)] = turn


@inlined()
def collect(out, row, two, misses, e, pitch, tiles, nodes, columns, middle, last, d, count):
    """Columns d to d + count of the gradients of example e, and of the next if there are two, from the rows as they were."""
    p0, p1 = _pull(misses, e, pitch, tiles, nodes, columns, np.uintp(0), middle, d)
    q0, q1 = _pull(misses, e, pitch, tiles, nodes, columns, middle, last, d)
    back = spread(out.dtype.type(-1), TILE)
    store_row(out, row, d, multiply(back, add(p0, q0)), count)
    if two:
        store_row(out, row + np.uintp(1), d, multiply(back, add(p1, q1)), count)


@inlined()
def _pull(misses, e, pitch, tiles, nodes, columns, first, last, d):
    """The sums of nodes first to last, each times its miss, of examples e and e + 1."""
    g0 = g1 = zeros(tiles, TILE)
    for n in range(first, last):
        w = load(tiles, nodes + n * columns + d, lanes(tiles, TILE), TILE)
        g0 = multiply_add(spread(misses[e * pitch + n], TILE), w, g0)
        g1 = multiply_add(spread(misses[(e + np.uintp(1)) * pitch + n], TILE), w, g1)
    return g0, g1


@inlined()
def move_two(rows, steps, pitch, tiles, nodes, columns, examples, entries, head, begin, n, last, rate, d, count):
    """Columns d to d + count of nodes n and n + 1, by plain SGD; steps: misses times the rate."""
    at, size = nodes + n * columns + d, lanes(tiles, TILE)
    w0, w1 = load(tiles, at, size, TILE), load(tiles, at + columns, size, TILE)
    for e in range(examples):
        h, place = load(tiles, e * columns + d, size, TILE), e * pitch + n
        w0 = multiply_add(spread(steps[place], TILE), h, w0)
        w1 = multiply_add(spread(steps[place + np.uintp(1)], TILE), h, w1)
    store_row(rows, entries[head, begin + n] >> 1, d, w0, count)
    if n + np.uintp(1) < last:
        store_row(rows, entries[head, begin + n + np.uintp(1)] >> 1, d, w1, count)
