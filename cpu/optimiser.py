"""Optimisers of dense weights on the CPU: the `Optimiser` contract.

Each function is one pass over weights, state and gradient, which it clears. All are memory-bound. Bytes read and written per
float32 parameter, and numbers of state:

    sgd    16, no state; with momentum 24, one
    adam   32, two; also AdamW
    clip    4, before any of them: the norm of the gradient; pieces of a fixed size are added in order
    merge  16, before that, if a batch has several micro-batches: the sum of two gradients

Loops are partitioned into pieces of NUMBERS, so results depend on sizes alone, not on the thread count.
"""

import math
from typing import Any

import numba
import numpy as np

from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.activation import ZERO

NUMBERS = 1 << 16  # numbers per piece
RUN = 1 << 12  # squares added in the array's own dtype
NEAR = 1e-6  # added to the norm, as in torch.nn.utils.clip_grad_norm_
ADAM = 1e-8  # added to the root, as in torch.optim.Adam
# Smaller means and mean squares become 0: for dead units they would turn into denormals, a hundred times as slow. Such a mean
# changes a weight by less than 1e-20 of the rate.
FORGOTTEN = np.float32(1e-30)

kernel = called(error_model="numpy", fastmath={"reassoc", "contract"})
parallel = launched(error_model="numpy", fastmath={"reassoc", "contract"}, parallel=True)


def workspace(size: int) -> tuple[Array, Array]:
    """Allocates scratch for `clip`: the squares of each piece, and the factor of the gradient."""
    return np.empty(_pieces(size)), np.empty(1)


def clip(work: tuple[Array, Array], grad: Array, scale: float, most: float) -> None:
    """Writes the factor by which to multiply the gradient so that the norm of scale * grad is at most `most`."""
    parts, factor = work
    _squares(parts, grad)
    _factor(factor, parts, scale, most)


def merge(grad: Array, part: Array) -> None:
    """grad <- grad + part; part <- 0. See the contract."""
    _merge(grad, part, _pieces(grad.size))


def sgd(weights: Array, velocity: Array | None, grad: Array, move: Any, momentum: float) -> None:
    """velocity <- momentum velocity - rate g; weights <- weights + velocity; grad <- 0. See the contract."""
    descend(weights, velocity, grad, move.rate * _scale(move), momentum, move.rate * move.decay)


def descend(
    weights: Array, velocity: Array | None, grad: Array, rate: float, momentum: float, shrink: float = 0.0
) -> None:
    """Does sgd; each weight shrinks by the share `shrink`."""
    rate, momentum, shrink = map(weights.dtype.type, (rate, momentum, shrink))
    _sgd(weights, velocity, grad, rate, momentum, shrink, _pieces(weights.size))


def adam(
    weights: Array, mean: Array, squares: Array, grad: Array, move: Any, betas: tuple[float, float], updates: int,
    decoupled: bool,
) -> None:  # fmt: skip
    """mean and squares follow g and g^2; weights are updated by mean / root of squares; grad <- 0. See the contract."""
    first, second = betas
    number = weights.dtype.type
    keep, decay = (1 - move.rate * move.decay, 0.0) if decoupled else (1.0, move.decay)
    rate, root = move.rate / (1 - first**updates), 1 / math.sqrt(1 - second**updates)
    scalars = (rate, _scale(move), keep, decay, first, 1 - first, second, 1 - second, root, ADAM)
    _adam(weights, mean, squares, grad, *map(number, scalars), _pieces(weights.size))


def _scale(move: Any) -> float:
    """Returns the factor of the accumulated gradient."""
    return float(move.scale if move.cut is None else move.scale * move.cut[1][0])


def _pieces(size: int) -> int:
    return int(-(-size // NUMBERS))


@kernel
def _piece(array, k):
    """Returns the k-th run of NUMBERS of an array; the last is shorter."""
    return array[k * NUMBERS : (k + 1) * NUMBERS]


@kernel
def _square_sum(values):
    total = values.dtype.type(0)
    for i in range(values.size):
        total += values[i] * values[i]
    return total


@parallel
def _squares(parts, grad):
    for k in numba.prange(parts.size):
        piece, total = _piece(grad, k), 0.0
        for at in range(0, piece.size, RUN):
            total += _square_sum(piece[at : at + RUN])
        parts[k] = total


@launched(error_model="numpy", fastmath={"reassoc", "contract"})
def _factor(factor, parts, scale, most):
    total = 0.0
    for k in range(parts.size):
        total += parts[k]
    share = most / (scale * math.sqrt(total) + NEAR)
    factor[0] = 1.0 if share > 1 else share  # a NaN stays a NaN


@parallel
def _merge(grad, part, pieces):
    for k in numba.prange(pieces):
        g, p = _piece(grad, k), _piece(part, k)
        for i in range(g.size):
            g[i] += p[i]
            p[i] = 0


@parallel
def _sgd(weights, velocity, grad, rate, momentum, shrink, pieces):
    for k in numba.prange(pieces):
        w, g = _piece(weights, k), _piece(grad, k)
        if velocity is None:
            _descend(w, g, rate, shrink)
        else:
            _roll(w, _piece(velocity, k), g, rate, momentum, shrink)


@kernel
def _descend(w, g, rate, shrink):
    if shrink == 0:
        for i in range(w.size):
            w[i] -= rate * g[i]
            g[i] = 0
    else:
        for i in range(w.size):
            w[i] -= rate * g[i] + shrink * w[i]
            g[i] = 0


@kernel
def _roll(w, v, g, rate, momentum, shrink):
    if shrink == 0:
        for i in range(w.size):
            v[i] = momentum * v[i] - rate * g[i]
            w[i] += v[i]
            g[i] = 0
    else:
        for i in range(w.size):
            v[i] = momentum * v[i] - (rate * g[i] + shrink * w[i])
            w[i] += v[i]
            g[i] = 0


@kernel
def _remembered(value):
    """Returns the value, or 0 below FORGOTTEN; a NaN stays a NaN."""
    return ZERO if abs(value) < FORGOTTEN else value


@parallel
def _adam(
    weights, mean, squares, grad, rate, scale, keep, decay, first, first_rest, second, second_rest, root, epsilon, pieces,
):  # fmt: skip
    for k in numba.prange(pieces):
        w, m, s, g = _piece(weights, k), _piece(mean, k), _piece(squares, k), _piece(grad, k)
        for i in range(w.size):
            slope = scale * g[i] + decay * w[i]
            m[i] = _remembered(first * m[i] + first_rest * slope)
            s[i] = _remembered(second * s[i] + second_rest * slope * slope)
            w[i] = keep * w[i] - rate * m[i] / (math.sqrt(s[i]) * root + epsilon)
            g[i] = 0
