"""The k largest w . h + b over a constant table: exact, reading little more than a quarter of its bytes.

A product with one hidden vector is memory-bound: 4 D bytes per float32 row. Here a row is the centre of its cluster plus a
residual, stored as D int8 numbers and 16 more bytes, and

    w . h = c . h + s t (q . g) + error,    |error| <= |h| (|r - s q| + |s q| |h - t g| / |h| + rounding)

for codes q of the residual r and 16-bit numbers g of h. The product q . g is exact in int32. So a row is either certainly worse
than the k-th best so far, or scored in float64 from its float32 numbers. Few need that. A cluster is skipped if

    c . h + |h| max |r| + max b

is below the k-th best. This Cauchy-Schwarz bound skips few clusters above a width of 64. With only a part of the radii,
clusters that seldom hold a neighbour are skipped: the search is faster and no longer exact.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from cpu.output import topk
from cpu.output.topk import Excluded, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.tree import clusters as alike
from cpu.vectors.simd import BYTES, add_byte_products, no_products, sum_products

ROWS = 128  # average rows per cluster: reading the centres costs 4 / 128 of the codes
GROUP = 32  # rows compared as a group with the worst of the best so far, before each is checked
FIRST = 32  # one in this many clusters is searched first, so that most of the other rows are not scored
PASS = 128  # clusters coded at a time
UNIT = 2.0**-24  # half the distance of float32 numbers at 1


class Codes(NamedTuple):
    """A table (V, D) in C clusters; rows are in the order of their clusters, except weights and bias.

    weights  (V, D) float32, as given, and bias (V,) float32
    ids      (V,) int32, the row of the table
    codes    (V P,) int8, P: D rounded up
    scales   (V,) float32, of the codes
    highest  (V,) float32, an upper bound of the bias
    off      (V,) float32, the error bound of a product with a unit vector
    ends     (C + 1,) int64, the start of each cluster
    centres  (C, D) float32
    bounds   (3, C) float32: the longest residual, the highest bias, the error of a centre's product with a unit vector
    most     the largest 16-bit number allowed for a hidden vector; widest: rows of the largest cluster, rounded up
    """

    weights: Array
    bias: Array
    ids: Array
    codes: Array
    scales: Array
    highest: Array
    off: Array
    ends: Array
    centres: Array
    bounds: Array
    most: int
    widest: int


class _Queries(NamedTuple):
    """Hidden vectors (B, D), their 16-bit numbers (B, P), lengths and scales (B,) float32; products with the centres and upper
    bounds of a row's score per cluster, (B, C); exclusions as in cpu/output/topk.py."""

    hidden: Array
    numbers: Array
    lengths: Array
    scales: Array
    dots: Array
    bounds: Array
    out_first: Array
    out_last: Array
    left_out: Array


def encode(weights: Array, bias: Array | None = None, *, seed: int = 0) -> Codes:
    """Encodes weights (V, D) float32, C-contiguous and finite; bias (V,) float32, None: 0. O(V D log V)."""
    classes, width = weights.shape
    bias = np.zeros(classes, np.float32) if bias is None else bias
    parts = max(1, classes // ROWS)
    cluster = alike.equal(weights - weights.mean(axis=0), parts, seed=seed)  # the common mean does not affect the order
    ids = np.argsort(cluster, kind="stable").astype(np.int32)
    ends = np.searchsorted(cluster[ids], np.arange(parts + 1))
    widest = -(-classes // parts) + 3
    most = min(2**15 - 1, (2**31 - 1) // (127 * width))
    pitch = -(-width // BYTES) * BYTES
    codes, (scales, off) = np.zeros((classes, pitch), np.int8), np.empty((2, classes), np.float32)
    centres, bounds = np.empty((parts, width), np.float32), np.empty((3, parts), np.float32)
    highest = _up(bias[ids] + 8 * UNIT * np.abs(bias[ids], dtype=np.float64))
    bounds[1] = np.maximum.reduceat(highest, ends[:-1])
    for first in range(0, parts, PASS):
        some = slice(first, min(first + PASS, parts))
        at = slice(ends[some.start], ends[some.stop])
        starts, sizes = ends[some] - at.start, np.diff(ends[some.start : some.stop + 1])
        residual = weights[ids[at]].astype(np.float64)
        centres[some] = np.add.reduceat(residual, starts) / sizes[:, None]
        residual -= np.repeat(centres[some], sizes, axis=0)
        scale = (np.maximum(np.abs(residual).max(axis=1), np.finfo(np.float32).tiny * 2**10) / 127).astype(np.float32)
        rounded = np.clip(np.rint(residual / scale[:, None]), -127, 127)
        codes[at, :width] = rounded
        rounded *= scale[:, None]
        coded, lost = np.linalg.norm(rounded, axis=1), np.linalg.norm(residual - rounded, axis=1)
        bounds[0, some] = _up(np.maximum.reduceat(np.linalg.norm(residual, axis=1), starts))
        bounds[2, some] = _up(2 * (width + 4) * UNIT * np.linalg.norm(centres[some].astype(np.float64), axis=1))
        off[at] = _up(lost + coded * (math.sqrt(width) / 2 / most + 8 * UNIT) + np.repeat(bounds[2, some], sizes))
        scales[at] = scale
    return Codes(weights, bias, ids, codes.ravel(), scales, highest, off, ends, centres, bounds, most, widest)


def _up(bound: Array) -> Array:
    """Rounds up to float32; the margin covers the rounding errors of float64, too."""
    return np.nextafter((bound * (1 + 4 * UNIT)).astype(np.float32), np.float32(np.inf))


def search(
    ids: Array, scores: Array, table: Codes, hidden: Array, share: float = 1.0, without: Excluded | None = None
) -> Array:
    """Writes the k largest of each query, largest first; ids (B, k) int32, scores (B, k) float32, hidden (B, D) float32.

    share  of the clusters' radii: 1 is exact. Equal float64 scores: the lower id is first
    Returns the number of rows (B,) whose codes were read.
    """
    threads, without = numba.get_num_threads(), without or none_excluded(len(hidden))
    numbers, lengths, scales = _numbers(hidden, table)
    dots = hidden @ table.centres.T
    radius, bias, off = table.bounds
    bounds = dots.astype(np.float64) + bias + lengths[:, None] * (share * radius.astype(np.float64) + off)
    order = np.argsort(-bounds, axis=1)
    best = np.empty(scores.shape)
    read, done = np.zeros((threads + 1, len(hidden)), np.int64), np.zeros(bounds.shape, np.bool_)
    parts = bounds.shape[1]
    first = parts if share < 1 else -(-parts // FIRST)
    queries = _Queries(hidden, numbers, lengths.astype(np.float32), scales, dots, bounds, *without)
    _search_first(ids, best, read[0], done, order, first, table, queries, threads)
    if first < parts:
        heaps = np.full((threads, *ids.shape), -1, np.int32)
        heap_scores = np.full(heaps.shape, -np.inf)
        _search_rest(heaps, heap_scores, read[1:], done, best[:, 0].copy(), table, queries)
        topk.merge(ids, best, heaps, heap_scores, threads)
    else:
        topk.merge(ids, best, np.empty((0, *ids.shape), np.int32), np.empty((0, *ids.shape)), threads)
    scores[:] = best
    return read.sum(axis=0)


def shares(table: Codes, hidden: Array, truth: Array) -> Array:
    """Returns the least share of the radii that guarantees to find each of the true ids (B, k), (B, k)."""
    cluster = np.empty(len(table.ids), np.int32)
    cluster[table.ids] = np.repeat(np.arange(len(table.centres), dtype=np.int32), np.diff(table.ends))
    lengths = np.linalg.norm(hidden, axis=1, keepdims=True).astype(np.float64)
    centres, (radius, bias, off) = cluster[truth], table.bounds
    worst = np.einsum("bd,bd->b", hidden, table.weights[truth[:, -1]], dtype=np.float64) + table.bias[truth[:, -1]]
    known = np.take_along_axis(hidden @ table.centres.T, centres, 1) + bias[centres] + lengths * off[centres]
    room = np.maximum(lengths * radius[centres], np.finfo(np.float32).tiny)
    return np.clip((worst[:, None] - known) / room, 0, 1)


def _numbers(hidden: Array, table: Codes) -> tuple[Array, Array, Array]:
    """Returns the queries' 16-bit numbers (B, P), lengths (B,) float64, rounded up, and scales (B,) float32."""
    wide = hidden.astype(np.float64)
    scale = np.maximum(np.abs(wide).max(axis=1), np.finfo(np.float32).tiny * 2**20) / table.most
    numbers = np.zeros((len(hidden), len(table.codes) // max(len(table.ids), 1)), np.int16)
    numbers[:, : hidden.shape[1]] = np.rint(wide / scale[:, None])
    return numbers, np.linalg.norm(wide, axis=1) * (1 + 4 * UNIT), scale.astype(np.float32)


@launched(parallel=True)
def _search_first(ids, scores, read, done, order, most, table, queries, threads):
    """Writes the best of each query's first clusters as heaps, until no other cluster may hold a better row."""
    for thread in numba.prange(threads):
        room = np.empty(table.widest, np.float32)
        for b in range(thread, ids.shape[0], threads):
            topk.clear(ids[b], scores[b])
            for i in range(most):
                c = order[b, i]
                if queries.bounds[b, c] < scores[b, 0]:
                    break
                done[b, c] = True
                read[b] += table.ends[c + 1] - table.ends[c]
                _visit(ids[b], scores[b], scores[b, 0], table, c, queries, b, room)


@launched(parallel=True)
def _search_rest(ids, scores, read, done, floors, table, queries):
    """Writes the best of the other clusters as heaps per thread; a cluster's codes are read once for all queries."""
    threads = ids.shape[0]
    for thread in numba.prange(threads):
        room = np.empty(table.widest, np.float32)
        for c in range(thread, queries.bounds.shape[1], threads):
            for b in range(queries.hidden.shape[0]):
                floor = max(floors[b], scores[thread, b, 0])
                if done[b, c] or queries.bounds[b, c] < floor:
                    continue
                read[thread, b] += table.ends[c + 1] - table.ends[c]
                _visit(ids[thread, b], scores[thread, b], floor, table, c, queries, b, room)


@called(error_model="numpy")
def _visit(ids, scores, floor, table, c, queries, b, room):
    """Pushes a cluster's rows that may reach `floor` and the worst of query b's heap; four rows at a time."""
    hidden, numbers, length, scale = queries.hidden[b], queries.numbers[b], queries.lengths[b], queries.scales[b]
    dot, left_out = queries.dots[b, c], queries.left_out[queries.out_first[b] : queries.out_last[b]]
    begin, rows, pitch = table.ends[c], table.ends[c + 1] - table.ends[c], numbers.size
    for j in range(0, rows, 4):
        products = _products(table.codes, begin + j, min(4, rows - j), pitch, numbers)
        for i in range(min(4, rows - j)):
            room[j + i] = products[i]
    end = begin + rows
    _bound(room[:rows], table.scales[begin:end], table.highest[begin:end], table.off[begin:end], length, scale, dot)
    for first in range(0, rows, GROUP):
        last, some = min(first + GROUP, rows), 0
        for j in range(first, last):
            some |= not room[j] < floor
        for j in range(first, last if some else first):
            row = table.ids[begin + j]
            if not room[j] < floor and not is_excluded(left_out, 0, left_out.size, row):
                topk.push(ids, scores, row, _score(table.weights[row], hidden) + table.bias[row])
                floor = max(floor, scores[0])


@called(error_model="numpy")
def _bound(room, scales, highest, off, length, scale, dot):
    """Replaces the products of the codes by upper bounds of the rows' scores."""
    for j in range(room.size):
        room[j] = dot + highest[j] + scales[j] * (scale * room[j]) + off[j] * length


@called(error_model="numpy")
def _products(codes, v, rows, pitch, numbers):
    """Returns the products of `numbers` with the codes of four rows from v on; rows past the last repeat the last row."""
    first, second = v * pitch, (v + min(1, rows - 1)) * pitch
    third, fourth = (v + min(2, rows - 1)) * pitch, (v + rows - 1) * pitch
    a, b, c, d = no_products(), no_products(), no_products(), no_products()
    for i in range(0, pitch, BYTES):
        a = add_byte_products(codes, first + i, numbers, i, a)
        b = add_byte_products(codes, second + i, numbers, i, b)
        c = add_byte_products(codes, third + i, numbers, i, c)
        d = add_byte_products(codes, fourth + i, numbers, i, d)
    return sum_products(a), sum_products(b), sum_products(c), sum_products(d)


@called(fastmath={"reassoc", "contract"})
def _score(row, hidden):
    total = 0.0
    for d in range(row.size):
        total += np.float64(row[d]) * np.float64(hidden[d])
    return total
