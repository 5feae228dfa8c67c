"""The layers of an MLP: what each has, where its numbers lie in the flat weights, what they are at first."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import check
from ...contract import Layer
from ._one_hidden import ACTIVATIONS as OF_UNITS

ACTIVATIONS = (*OF_UNITS, "gelu", "linear")
RECTIFIED = ("relu", "gelu")  # they halve the variance, so their weights begin larger
LEAST = 4096  # numbers of a span: a message of 16 KiB takes about as long as its latency
ALIGNED = 32  # numbers at multiples of which spans begin, as GPUs load them


def layers(
    sizes: Sequence[int],
    activation: str,
    last: str | None,
    *,
    bias: bool,
    dropout: float,
    layer_norm: bool,
    residual: bool,
) -> list[Layer]:
    """One layer for every pair of neighbouring sizes; only hidden ones have norm, dropout and input.

    Raises ValueError for fewer than two sizes, or one below 1, an unknown activation, a dropout that is not from 0 to below
    1, and for norm, dropout and input where no layer could have them.
    """
    sizes = [check.whole(f"sizes[{place}]", size, 1) for place, size in enumerate(_listed(sizes))]
    check.choice("activation", activation, ACTIVATIONS)
    ends = activation if last is None else check.choice("last", last, ACTIVATIONS)
    if check.number("dropout", dropout, 0) >= 1:
        raise ValueError(f"dropout: found {dropout}, expected a number below 1")
    for name, wanted in (("dropout", dropout), ("layer_norm", layer_norm)):
        if wanted and len(sizes) == 2:
            raise ValueError(f"{name}: found {wanted}, but sizes {sizes} have no hidden layer; leave it out")
    if residual and not any(n == o for n, o in itertools.pairwise(sizes[:-1])):
        raise ValueError(f"residual: found True, but in sizes {sizes} no hidden layer is as wide as its input")
    made: list[Layer] = []
    at = 0
    for place, (n, o) in enumerate(itertools.pairwise(sizes)):
        hidden = place < len(sizes) - 2
        has = (bool(bias), bool(layer_norm) and hidden, bool(residual) and hidden and n == o)
        made.append(Layer(n, o, at, *has, activation if hidden else ends, float(dropout) if hidden else 0.0))
        at += numbers(made[-1])
    return made


def numbers(layer: Layer) -> int:
    """How many numbers a layer learns."""
    return layer.outputs * (layer.inputs + layer.bias + 2 * layer.norm)


def spans(made: Sequence[Layer]) -> list[slice]:
    """Where the gradients of layers lie, of the last ones first; those of fewer than LEAST numbers go with the next."""
    found: list[slice] = []
    end = sum(map(numbers, made))
    for layer in reversed(made):
        begin = -(-layer.at // ALIGNED) * ALIGNED
        if end - begin >= LEAST or not begin:
            found.append(slice(begin, end))
            end = begin
    return found


def initial(made: Sequence[Layer], rng: np.random.Generator) -> np.ndarray:
    """Uniform weights, of variance 2 / (fan in + fan out) (Glorot and Bengio 2010), or 2 / fan in under relu and gelu (He et
    al. 2015, arXiv:1502.01852); gains of 1, biases and shifts of 0.
    """
    weights = np.zeros(sum(map(numbers, made)), np.float32)
    for layer in made:
        fans = layer.inputs + (0 if layer.activation in RECTIFIED else layer.outputs)
        bound, matrix = np.sqrt(6 / fans), layer.inputs * layer.outputs
        weights[layer.at : layer.at + matrix] = rng.uniform(-bound, bound, matrix)
        if layer.norm:
            gain = layer.at + matrix + layer.outputs * layer.bias
            weights[gain : gain + layer.outputs] = 1
    return weights


def _listed(sizes: Any) -> list[Any]:
    found = list(sizes) if isinstance(sizes, Sequence | np.ndarray) and not isinstance(sizes, str) else []
    if len(found) < 2:
        raise ValueError(f"sizes: found {sizes!r}, expected the inputs, the width of every hidden layer, the outputs")
    return found
