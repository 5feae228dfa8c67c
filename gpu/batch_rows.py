"""Rows that all examples of a batch visit, as in a full softmax: each is updated once, with the summed gradient.

cuBLAS does the products, batch_rows.cu the rest. Plain SGD is one product that accumulates into the rows, which are read and
written once. Adagrad materialises the gradient in pieces of at most 32 MB, as many rows at a time as fit.
"""

from typing import Any

import numpy as np

from gpu import device
from gpu.rule import cut, wide
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array
from gpu.runtime.blas import Matrix

NUMBERS = 1 << 23  # numbers per piece of the gradient
WARPS = 8  # warps per block, as in batch_rows.cu


def move(learned: Any, misses: Array | Matrix, hidden: Array | Matrix, rate: float) -> None:
    """Updates the C rows of `learned`, and their biases, with the gradient misses^T hidden.

    misses  (B, C)  d loss / d score of each example and row
    hidden  (B, D)  bfloat16 if the misses are
    """
    misses = Matrix.of(misses)
    if not misses.rows:
        return
    if learned.squares is None:
        sum_columns(learned.biases, misses, 1.0, -rate)
        blas.gemm(learned.rows, misses, hidden, alpha=-rate, beta=1.0, a_transposed=True)
        return
    C, D = learned.rows.shape
    most = max(NUMBERS // D, 1)
    for first in range(0, C, most):
        last = min(first + most, C)
        piece = misses._replace(pointer=misses.pointer + misses.size * first, columns=last - first)
        _visit(cut(learned, first, last), piece, hidden, rate)


def _visit(learned: Any, misses: Matrix, hidden: Array | Matrix, rate: float) -> None:
    """Does `move` for the rows of one piece of the gradient."""
    R, D = learned.rows.shape
    grad = device.scratch("rows gradient", (R, D), np.float32)
    blas.gemm(grad, misses, hidden, a_transposed=True)
    bias_grad = None if learned.biases is None else device.scratch("biases gradient", R, np.float32)
    sum_columns(bias_grad, misses)
    arrays = learned.rows, learned.biases, learned.squares, learned.bias_squares, grad, bias_grad
    kernels.launch(__file__, "move", "PPPPPPfiii", -(-R // WARPS), 32 * WARPS, *arrays, rate, wide(learned), R, D)


def sum_columns(out: Array | None, matrix: Matrix, kept: float = 0, factor: float = 1) -> None:
    """out = kept out + factor times the sum of the matrix's rows; does nothing if out is None."""
    if out is not None:
        name, blocks = "sum_columns" if matrix.size == 4 else "sum_columns_half", -(-matrix.columns // 32)
        sizes = matrix.rows, matrix.columns, matrix.pitch
        kernels.launch(__file__, name, "PPffiii", blocks, 256, out, matrix.pointer, kept, factor, *sizes)
