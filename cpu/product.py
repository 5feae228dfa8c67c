"""A matrix product on all threads: parts, each of which is one GEMM of the BLAS on one thread.

A part of m rows, n columns and K terms takes m n K multiplications, and the BLAS copies its (m + n) K factors first: more than
a third of the time at 64 x 128, a tenth at 512 x 512. So parts are few and square. Where a product is small and K is large, as
for the gradient of a matrix, its terms are cut instead, and the sums are added in their order.

What is cut depends on sizes alone, so the bits do not depend on the number of threads.
"""

import functools
import itertools
import math

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.array import Array
from cpu.blas import gemm
from cpu.compiled import launched

ROWS, COLUMNS = 1024, 2048  # of a part at most
PARTS = (1, 2, 4, 8)  # along one side, beyond what ROWS and COLUMNS ask for; the last is enough for a whole product
TWO = 1 << 22  # multiplications of a product of 2 parts; one of 16 times as many has twice as many parts
SUMS = 1 << 20  # numbers of parts whose terms are cut
ADDED = 2  # writing and adding a number costs about as much as copying so many

FAST = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}


def workspace(dtype: DTypeLike) -> Array:
    """The scratch array of a product whose terms may be cut; of the memory only what is used is ever touched."""
    return np.empty(SUMS, dtype)


def product(out: Array, a: Array, b: Array, keep: int, work: Array | None = None) -> None:
    """out <- a b + keep out; keep 0: out is not read. work: a workspace; without it terms are not cut.

    out (M, N), a (M, K), b (K, N) as in `gemm`, with at least one term.
    """
    rows, columns = out.shape
    size, width, depth, pieces = _cut(rows, columns, a.shape[1], 0 if work is None else work.size)
    sums = out[np.newaxis] if work is None else work[: (pieces - 1) * out.size].reshape(-1, rows, columns)
    _product(out, sums, a, b, keep, size, width, depth)
    if pieces > 1:
        _add_up(out, sums)


@functools.cache
def _cut(rows: int, columns: int, terms: int, room: int) -> tuple[int, int, int, int]:
    """Rows, columns and terms of a part, and into how many pieces the terms are cut; their sums but one take this room."""
    wanted = min(PARTS[-1], 2 * (rows * columns * terms / TWO) ** 0.25)
    down, across = -(-rows // ROWS), -(-columns // COLUMNS)
    cuts = itertools.product([down * n for n in PARTS], [across * n for n in PARTS], PARTS)
    able = [cut for cut in cuts if 2 * math.prod(cut) > wanted and (cut[2] - 1) * rows * columns <= room]

    def cost(cut: tuple[int, int, int]) -> int:
        return terms * (columns * cut[0] + rows * cut[1]) + ADDED * rows * columns * (cut[2] - 1)

    down, across, pieces = min(able, key=cost)
    depth = -(-terms // pieces)
    return _share(rows, down, 4), _share(columns, across, 16), depth, -(-terms // depth)


def _share(whole: int, parts: int, step: int) -> int:
    """What one of so many parts has, in steps that fill the registers of a BLAS."""
    return -(-whole // (parts * step)) * step


@launched(**FAST, parallel=True)
def _product(out, sums, a, b, keep, size, width, depth):
    """The first piece of the terms goes to `out`, the others to sums (pieces - 1, M, N)."""
    down, across = -(-out.shape[0] // size), -(-out.shape[1] // width)
    for part in numba.prange(-(-a.shape[1] // depth) * down * across):
        piece, tile = part // (down * across), part % (down * across)
        i, j, k = tile // across * size, tile % across * width, piece * depth
        rows, columns = slice(i, min(i + size, out.shape[0])), slice(j, min(j + width, out.shape[1]))
        terms = slice(k, min(k + depth, a.shape[1]))
        if piece == 0:
            gemm(out[rows, columns], a[rows, terms], b[terms, columns], 1, keep)
        else:
            gemm(sums[piece - 1, rows, columns], a[rows, terms], b[terms, columns], 1, 0)


@launched(**FAST, parallel=True)
def _add_up(out, sums):
    """out <- out + sums, in their order."""
    for i in numba.prange(out.shape[0]):
        row = out[i]
        for piece in range(sums.shape[0]):
            more = sums[piece, i]
            for j in range(row.size):
                row[j] += more[j]
