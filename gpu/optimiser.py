"""Optimisers of dense weights on a GPU: the `Optimiser` contract. One pass of optimiser.cu; asynchronous."""

import math
from typing import Any, NamedTuple

import numpy as np

from gpu import device
from gpu.runtime import kernels
from gpu.runtime.array import Array

THREADS = 256
PART, BLOCKS = 4096, 1024  # norm: minimum number of squares per part, maximum number of parts
NEAR = 1e-6  # added to the norm, as in torch.nn.utils.clip_grad_norm_
ADAM = 1e-8  # added to the root, as in torch.optim.Adam


class Work(NamedTuple):
    """Scratch of `clip`: the squares of each part of the gradient, and the factor of the gradient."""

    parts: Array
    factor: Array


def workspace(size: int) -> Work:
    """Allocates scratch for `clip` of so many weights."""
    where = device.current().device
    return Work(where.empty(min(-(-size // PART), BLOCKS), np.float32), where.empty(1, np.float32))


def clip(work: Work, grad: Array, scale: float, most: float) -> None:
    """Writes the factor by which to multiply the gradient so that the norm of scale * grad is at most `most`."""
    parts, factor = work
    kernels.launch(__file__, "squares", "PPq", parts.size, THREADS, parts, grad, grad.size)
    kernels.launch(__file__, "cut_factor", "PPifff", 1, 32, factor, parts, parts.size, scale, most, NEAR)


def merge(grad: Array, part: Array) -> None:
    """grad <- grad + part; part <- 0. See the contract."""
    _sweep("merge", "PPq", grad, part, grad.size)


def sgd(weights: Array, velocity: Array | None, grad: Array, move: Any, momentum: float) -> None:
    """velocity <- momentum velocity - rate g; weights <- weights + velocity; grad <- 0. See the contract."""
    rate, shrink = move.rate * move.scale, move.rate * move.decay
    descend(weights, velocity, grad, _factor(move), rate, momentum, shrink)


def descend(
    weights: Array, velocity: Array | None, grad: Array, factor: Array | None, rate: float, momentum: float,
    shrink: float = 0.0,
) -> None:  # fmt: skip
    """Does sgd for a gradient scaled by `factor`; each weight shrinks by the share `shrink`."""
    if velocity is None:
        _sweep("sgd", "PPPffq", weights, grad, factor, rate, shrink, weights.size)
        return
    _sweep("momentum", "PPPPfffq", weights, velocity, grad, factor, rate, momentum, shrink, weights.size)


def adam(
    weights: Array, mean: Array, squares: Array, grad: Array, move: Any, betas: tuple[float, float], updates: int,
    decoupled: bool,
) -> None:  # fmt: skip
    """mean and squares follow g and g^2; weights are updated by mean / root of squares; grad <- 0. See the contract."""
    first, second = betas
    keep, decay = (1 - move.rate * move.decay, 0.0) if decoupled else (1.0, move.decay)
    rate, unbias = move.rate / (1 - first**updates), 1 / math.sqrt(1 - second**updates)
    scalars = (rate, move.scale, keep, decay, first, 1 - first, second, 1 - second, unbias, ADAM, weights.size)
    _sweep("adam", "PPPPPffffffffffq", weights, mean, squares, grad, _factor(move), *scalars)


def _factor(move: Any) -> Array | None:
    return None if move.cut is None else move.cut.factor


def _sweep(name: str, kinds: str, *arguments: Any) -> None:
    """Launches an update rule over all weights; the last argument is their number."""
    blocks = 16 * int(device.current().device.multiprocessors)
    kernels.launch(__file__, name, kinds, min(-(-arguments[-1] // (4 * THREADS)), blocks), THREADS, *arguments)
