"""Layers of an MLP on a GPU: the `Mlp` contract. cuBLAS does the products, one pass of mlp.cu over the rows the rest."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpu import device
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array
from gpu.units import CODES as OF_UNITS

CODES = OF_UNITS | {"gelu": 5, "linear": 6}  # as in mlp.cu
FEW, PIECES, ROWS = 64, 256, 16  # pieces of a batch in backward: FEW, or one per ROWS rows, up to PIECES
THREADS = 256
EPSILON = 1e-5  # added to the variance, as in torch.nn.LayerNorm
DRAWS = 2**32  # range of the random integers of a dropout mask


def workspace(widest: int, dtype: DTypeLike) -> Array:
    """Allocates scratch for `backward` of layers up to this width: sums over the pieces of a batch."""
    sums: Array = device.current().device.empty(PIECES * 3 * widest, dtype)
    return sums


def forward(passed: Any, layer: Any, weights: Array, x: Array, key: int | None) -> None:
    """Writes the arrays of `passed`: out, and before and spread if present. See the contract."""
    matrix, *vectors = _parts(weights, layer)
    blas.gemm(passed.out if passed.before is None else passed.before, x, matrix, b_transposed=True)
    rest = x if layer.residual else None
    below, lift, _ = _mask(layer, key)
    scalars = (CODES[layer.activation], key or 0, below, lift, EPSILON, layer.outputs)
    kernels.launch(__file__, "finish", "PPPPPPPiqqffi", len(x), _columns(layer), *passed, *vectors, rest, *scalars)


def backward(
    x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Any, weights: Array, passed: Any,
    x: Array, key: int | None,
) -> None:  # fmt: skip
    """Writes x_grad, adds to weight_grad; out_grad becomes the gradient of the matrix product. See the contract."""
    matrix, _, gain, shift = _parts(weights, layer)
    matrix_grad, *vector_grads = _parts(weight_grad, layer)
    batch, width = len(x), layer.outputs
    pieces = min(batch, max(FEW, min(batch // ROWS, PIECES)))
    written = (x_grad if layer.residual else None, out_grad, work)
    scalars = (CODES[layer.activation], key or 0, *_mask(layer, key), batch, width)
    read = (*passed, int(layer.bias), gain, shift)
    kernels.launch(__file__, "fall", "PPPPPPiPPiqqffii", pieces, _columns(layer), *written, *read, *scalars)
    arguments = (*vector_grads, work, pieces, width)
    kernels.launch(__file__, "collect", "PPPPii", -(-width // THREADS), THREADS, *arguments)
    if x_grad is not None:
        blas.gemm(x_grad, out_grad, matrix, beta=float(layer.residual))
    blas.gemm(matrix_grad, out_grad, x, beta=1, a_transposed=True)


def _parts(numbers: Array, layer: Any) -> tuple[Array, Array | None, Array | None, Array | None]:
    """Returns the matrix (outputs, inputs), bias, gain and shift (outputs,) of a layer; None if absent."""
    n, o, at = layer.inputs, layer.outputs, layer.at
    found: list[Array | None] = []
    rest = at + n * o
    for there in (layer.bias, layer.norm, layer.norm):
        found.append(numbers[rest : rest + o] if there else None)
        rest += o * there
    bias, gain, shift = found
    return numbers[at : at + n * o].reshape(o, n), bias, gain, shift


def _mask(layer: Any, key: int | None) -> tuple[int, float, float]:
    """Returns a dropout mask's drop threshold of DRAWS, the scale factor of kept numbers, and its inverse."""
    share = 0.0 if key is None else layer.dropout
    return round(share * DRAWS), float(np.float32(1 / (1 - share))), 1 - share


def _columns(layer: Any) -> int:
    """Returns the threads per block for one thread per column."""
    return min(-(-int(layer.outputs) // 32) * 32, THREADS)
