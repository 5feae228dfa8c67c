"""Layers of an MLP on the CPU: the `Mlp` contract. BLAS does the products; one pass over the rows does the rest.

A product is partitioned into blocks, each one single-threaded GEMM of the BLAS. A block of m rows, n columns and K terms takes
m n K multiplications. The BLAS first copies its (m + n) K factors: over a third of the time at 64 x 128, a tenth at 512 x 512.
So blocks are few and square. If a product is small and K is large, as for the gradient of a matrix, its terms are partitioned
instead. Partial sums are added in order. A pass splits the batch into PIECES. The partition depends on sizes alone, so results
do not depend on the thread count.
"""

import functools
import itertools
import math
from typing import Any

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.activation import CODES, activate, times_slope
from cpu.vectors.blas import gemm
from cpu.vectors.splitmix import GOLDEN, mix

ROWS, COLUMNS = 1024, 2048  # maximum size of a block
PARTS = (1, 2, 4, 8)  # blocks along one side beyond those for ROWS and COLUMNS; the last suffices for any product
TWO = 1 << 22  # multiplications of a product of 2 blocks; 16 times as many double the blocks
SUMS = 1 << 20  # size of the scratch for partial sums
ADDED = 2  # writing and adding a number costs as much as copying this many
PIECES = 16  # pieces of a batch in a pass over its rows
DRAWS = 2**32  # range of the random integers of a dropout mask

FAST: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
kernel, parallel = called(**FAST), launched(**FAST, parallel=True)


def workspace(widest: int, dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Allocates scratch for `backward` of layers up to this width: sums and a spare row per piece, and product scratch."""
    return np.empty((PIECES, widest), dtype), np.empty((PIECES, widest), dtype), product_workspace(dtype)


def forward(out: Array, layer: Any, weights: Array, x: Array, key: int | None) -> None:
    """Writes out. See the contract."""
    matrix, bias = _parts(weights, layer)
    product(out, x, matrix.T, 0)
    _finish(out, bias, CODES[layer.activation], *_mask(layer, key, x.dtype))


def backward(
    x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Any, weights: Array, out: Array,
    x: Array, key: int | None,
) -> None:  # fmt: skip
    """Writes x_grad, adds to weight_grad; out_grad becomes the gradient of the matrix product. See the contract."""
    matrix, _ = _parts(weights, layer)
    matrix_grad, bias_grad = _parts(weight_grad, layer)
    sums, rows, spare = work
    _fall(out_grad, sums, rows, out, layer.bias, CODES[layer.activation], *_mask(layer, key, x.dtype))
    _collect(bias_grad, sums)
    if x_grad is not None:
        product(x_grad, out_grad, matrix, 0)
    product(matrix_grad, out_grad.T, x, 1, spare)


def _parts(numbers: Array, layer: Any) -> tuple[Array, Array]:
    """Returns the matrix (outputs, inputs) and the bias (outputs,) of a layer; an absent one is empty."""
    begin, o = layer.at + layer.inputs * layer.outputs, layer.outputs
    return numbers[layer.at : begin].reshape(o, layer.inputs), numbers[begin : begin + o * layer.bias]


def _mask(layer: Any, key: int | None, dtype: DTypeLike) -> tuple[Any, ...]:
    """Returns a dropout mask's key, drop threshold of DRAWS, scale factor of kept numbers, and its inverse."""
    return (np.uint64(key or 0), *_dropped(0.0 if key is None else layer.dropout, np.dtype(dtype)))


@functools.cache
def _dropped(share: float, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    number: Any = dtype.type
    return np.uint64(round(share * DRAWS)), number(1 / (1 - share)), number(1 - share)


def product(out: Array, a: Array, b: Array, keep: int, work: Array | None = None) -> None:
    """out <- a b + keep out; keep 0: out is not read. work: a workspace; without it the terms are not partitioned.

    out (M, N), a (M, K), b (K, N) as in `gemm`, K >= 1.
    """
    rows, columns = out.shape
    size, width, depth, pieces = _cut(rows, columns, a.shape[1], 0 if work is None else work.size)
    sums = out[np.newaxis] if work is None else work[: (pieces - 1) * out.size].reshape(-1, rows, columns)
    _product(out, sums, a, b, keep, size, width, depth)
    if pieces > 1:
        _add_up(out, sums)


def product_workspace(dtype: DTypeLike) -> Array:
    """Allocates scratch for a product whose terms may be partitioned; pages are touched only when used."""
    return np.empty(SUMS, dtype)


@functools.cache
def _cut(rows: int, columns: int, terms: int, room: int) -> tuple[int, int, int, int]:
    """Returns rows, columns and terms of a block, and the number of term pieces; all sums but one must fit in `room`."""
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
    """Returns the size of one of `parts` parts, rounded up to `step`, which fills the registers of a BLAS."""
    return -(-whole // (parts * step)) * step


@parallel
def _product(out, sums, a, b, keep, size, width, depth):
    """Writes the first piece of the terms to `out`, the others to sums (pieces - 1, M, N)."""
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


@parallel
def _add_up(out, sums):
    """out <- out + sums, in order."""
    for i in numba.prange(out.shape[0]):
        row = out[i]
        for piece in range(sums.shape[0]):
            more = sums[piece, i]
            for j in range(row.size):
                row[j] += more[j]


# Helpers take single rows of whole arrays: Numba types such a row as contiguous, which lets loops vectorise.


@parallel
def _finish(out, bias, code, key, below, lift, _):
    """Applies all that follows the product, which is in `out`, row by row."""
    for piece in numba.prange(PIECES):
        for b in range(piece * out.shape[0] // PIECES, (piece + 1) * out.shape[0] // PIECES):
            row = out[b]
            if bias.size:
                _add(row, bias)
            activate(row, code)
            if below:
                _drop(row, key, b * row.size, below, lift)


@parallel
def _fall(out_grad, sums, spare, out, biased, code, key, below, lift, share):
    """Computes the product's gradient from that of out, row by row; sums of a piece: of the bias."""
    width = out_grad.shape[1]
    for piece in numba.prange(PIECES):
        bias_sum = sums[piece]
        bias_sum[:width] = 0
        for b in range(piece * out.shape[0] // PIECES, (piece + 1) * out.shape[0] // PIECES):
            delta = out_grad[b]
            if below:
                _drop(delta, key, b * width, below, lift)
            _before_activation(delta, spare[piece], out[b], code, share)
            if biased:
                for i in range(width):
                    bias_sum[i] += delta[i]


@kernel
def _before_activation(delta, spare, row, code, share):
    """delta, d loss / d activation, becomes the gradient before the activation; row * share: the activations."""
    values = spare[: delta.size]
    for i in range(delta.size):
        values[i] = row[i] * share
    times_slope(delta, values, code)


@launched(**FAST)
def _collect(bias, sums):
    """Adds the sums of the pieces, in order."""
    for piece in range(sums.shape[0]):
        for i in range(bias.size):
            bias[i] += sums[piece, i]


@kernel
def _drop(row, key, at, below, lift):
    """Sets dropped numbers to 0 and multiplies the others by `lift`; at: the index of the row's first number."""
    none = row.dtype.type(0)
    for i in range(row.size):
        draw = mix(key + np.uint64(at + i + 1) * GOLDEN) >> np.uint64(32)
        row[i] = none if draw < below else row[i] * lift


@kernel
def _add(row, other):
    for i in range(row.size):
        row[i] += other[i]
