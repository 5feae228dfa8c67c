"""Layers of an MLP on a GPU: the `Mlp` contract. cuBLAS does the products, one pass of mlp.cu over the rows the rest."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpu import batch_rows, device
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array
from gpu.runtime.blas import Matrix
from gpu.units import CODES as OF_UNITS

CODES = OF_UNITS | {"linear": 5}  # as in mlp.cu
FEW, PIECES, ROWS = 64, 256, 16  # pieces of a batch in backward: FEW, or one per ROWS rows, up to PIECES
THREADS = 256
DRAWS = 2**32  # range of the random integers of a dropout mask


def workspace(widest: int, dtype: DTypeLike) -> Array:
    """Allocates scratch for `backward` of layers up to this width: sums over the pieces of a batch."""
    return device.current().device.empty(PIECES * widest, dtype)


def forward(out: Array, layer: Any, weights: Array, x: Array, key: int | None) -> None:
    """Writes out. See the contract."""
    matrix, bias = _parts(weights, layer)
    blas.gemm(out, x, matrix, b_transposed=True)
    below, lift, _ = _mask(layer, key)
    scalars = (CODES[layer.activation], key or 0, below, lift, layer.outputs)
    kernels.launch(__file__, "finish", "PPiqqfi", len(x), _columns(layer), out, bias, *scalars)


def backward(
    x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Any, weights: Array, out: Array,
    x: Array, key: int | None,
) -> None:  # fmt: skip
    """Writes x_grad, adds to weight_grad; out_grad becomes the gradient of the matrix product. See the contract."""
    matrix, _ = _parts(weights, layer)
    matrix_grad, bias_grad = _parts(weight_grad, layer)
    batch, width = len(x), layer.outputs
    pieces = min(batch, max(FEW, min(batch // ROWS, PIECES)))
    sums = work if layer.bias else None
    scalars = (CODES[layer.activation], key or 0, *_mask(layer, key), batch, width)
    kernels.launch(__file__, "fall", "PPPiqqffii", pieces, _columns(layer), out_grad, sums, out, *scalars)
    if layer.bias:
        batch_rows.sum_columns(bias_grad, Matrix(work.pointer, pieces, width, width), kept=1)
    if x_grad is not None:
        blas.gemm(x_grad, out_grad, matrix)
    blas.gemm(matrix_grad, out_grad, x, beta=1, a_transposed=True)


def _parts(numbers: Array, layer: Any) -> tuple[Array, Array | None]:
    """Returns the matrix (outputs, inputs) and the bias (outputs,) of a layer; None if absent."""
    begin, o = layer.at + layer.inputs * layer.outputs, layer.outputs
    return numbers[layer.at : begin].reshape(o, layer.inputs), numbers[begin : begin + o] if layer.bias else None


def _mask(layer: Any, key: int | None) -> tuple[int, float, float]:
    """Returns a dropout mask's drop threshold of DRAWS, the scale factor of kept numbers, and its inverse."""
    share = 0.0 if key is None else layer.dropout
    return round(share * DRAWS), float(np.float32(1 / (1 - share))), 1 - share


def _columns(layer: Any) -> int:
    """Returns the threads per block for one thread per column."""
    return min(-(-int(layer.outputs) // 32) * 32, THREADS)
