"""Collections of MLPs on the CPU: the `Units` contract.

The step of a batch visits one unit after another with the products of cpu/vectors/small_gemm.py, so a unit's weights stay in
the core's cache. The step of one example is in cpu/vectors/online.py. Steps of large units and batches, and forward or backward
alone, are single-threaded GEMMs of a BLAS. Their parallel loop runs over units, or over pairs of a unit and ROWS rows of the
batch. The order of every sum depends on sizes alone, so results do not depend on the thread count.
"""

from typing import Any

import numba
import numpy as np

from cpu import optimiser
from cpu.runtime import memory
from cpu.runtime.compiled import Array, called, launched
from cpu.runtime.threads import PARTS, shared
from cpu.vectors.activation import CODES, activate, times_slope
from cpu.vectors.blas import gemm
from cpu.vectors.online import step_online
from cpu.vectors.simd import broadcast, lanes, load, multiply_add, store, total, zeros
from cpu.vectors.small_gemm import asking, move, multiply, pack, pull, room
from cpu.vectors.tile import BITS

ROWS = 64  # rows per piece: a GEMM of fewer is slower per row, larger pieces leave threads idle
FEW, SMALL = 32, 3_000_000  # a BLAS is faster if examples, and examples times weights of a matrix, both exceed these

kernel = called(error_model="numpy", fastmath={"reassoc", "contract"})
# Without reference counts: a slice's is an atomic addition
free = called(_nrt=False, error_model="numpy", fastmath={"reassoc", "contract"})
parallel = launched(error_model="numpy", fastmath={"reassoc", "contract"}, parallel=True)


def plan(layout: Any) -> Any:
    """Returns the layout unchanged."""
    return layout


def forward(y: Array, hidden: Array, layout: Any, weights: Array, x: Array, activation: str) -> None:
    """Writes hidden and y."""
    _forward(y, hidden, layout, weights, x, CODES[activation], _pieces(len(x)))


def backward(
    x_grad: Array | None, weight_grad: Array, y_grad: Array, hidden_grad: Array, layout: Any, weights: Array,
    y: Array, hidden: Array, x: Array, activation: str,
) -> None:  # fmt: skip
    """Writes x_grad (None: skipped), adds to weight_grad; y_grad and hidden_grad become gradients before the activation."""
    code = CODES[activation]
    _backward_signals(x_grad, y_grad, hidden_grad, layout, weights, y, hidden, code, _pieces(len(x)))
    pieces = _pieces(max(layout.hidden.max(), layout.outputs.max()))
    _backward_weights(weight_grad, layout, y_grad, hidden_grad, hidden, x, pieces)


def update(weights: Array, velocity: Array | None, weight_grad: Array, rate: float, momentum: float) -> None:
    """velocity <- momentum velocity - rate weight_grad; weights <- weights + velocity; weight_grad <- 0; see the contract."""
    optimiser.descend(weights, velocity, weight_grad, rate, momentum)


def step(
    loss: Array, y: Array, hidden: Array, weights: Array, velocity: Array | None, y_grad: Array, hidden_grad: Array,
    layout: Any, x: Array, target: Array, rate: float | Array, momentum: float, activation: str,
) -> None:  # fmt: skip
    """See the contract: unit after unit, so that weights stay in cache. A unit's result is bit-identical to a step of
    it alone, unless a larger unit makes GEMMs faster."""
    number, count = weights.dtype.type, len(layout.inputs)
    rates = np.full(count, rate, weights.dtype)
    given = (layout, x, target, rates, number(momentum), CODES[activation])
    largest = int((layout.hidden * np.maximum(layout.inputs, layout.outputs)).max())
    if len(x) == 1 or (len(x) > FEW and len(x) * largest > SMALL):
        kind = step_online if len(x) == 1 else _step_large
        with shared(count):
            kind(loss, y, hidden, weights, velocity, y_grad, hidden_grad, *given)
    else:
        parts = min(count, PARTS * numba.get_num_threads())
        packed = memory.empty((parts, room(len(x), max(layout.inputs.max(), layout.hidden.max()))), weights.dtype)
        with shared(parts):
            _step(loss, y, hidden, weights, velocity, y_grad, hidden_grad, packed, *given)


def _pieces(rows: int) -> int:
    return int(-(-rows // ROWS))


@kernel
def _parts(numbers, layout, u):
    """Returns unit u's first matrix, its bias, the second and its bias, as views of an array laid out like the weights."""
    n, h, o, at = layout.inputs[u], layout.hidden[u], layout.outputs[u], layout.w_at[u]
    second = at + h * (n + 1)
    bias = second + o * h
    return (
        numbers[at : at + h * n].reshape((h, n)),
        numbers[at + h * n : second],
        numbers[second:bias].reshape((o, h)),
        numbers[bias : bias + o],
    )


@kernel
def _span(at, u):
    """Returns the columns of unit u."""
    return slice(at[u], at[u + 1])


@kernel
def _piece(k, rows):
    """Returns the k-th run of ROWS of `rows` rows; the last is shorter, those past the end are empty."""
    return slice(min(k * ROWS, rows), min((k + 1) * ROWS, rows))


# The helpers below take whole arrays and slice single rows: Numba types such a row as contiguous, but not a row of a block.
# Loops vectorise only over the former.


@kernel
def _layer(out, weights, bias, x, rows, span, x_span, code):
    """out[rows, span] = activation(x[rows, x_span] weights^T + bias)."""
    for b in range(rows.start, rows.stop):
        row = out[b, span]
        for i in range(bias.size):  # an array assignment also compiles Numba's error message, for two seconds
            row[i] = bias[i]
    gemm(out[rows, span], x[rows, x_span], weights.T, 1, 1)
    for b in range(rows.start, rows.stop):
        activate(out[b, span], code)


@kernel
def _before_activation(delta, values, rows, span, code):
    """delta, d loss / d values, becomes the gradient before the activation."""
    for b in range(rows.start, rows.stop):
        times_slope(delta[b, span], values[b, span], code)


@kernel
def _accumulate(matrix, bias, delta, span, x, x_span, keep, scale):
    """matrix <- keep matrix + scale delta^T x over the batch; the same for the bias, whose input is 1."""
    gemm(matrix, delta[:, span].T, x[:, x_span], scale, keep)
    bias *= keep
    for b in range(delta.shape[0]):
        row = delta[b, span]
        for r in range(bias.size):
            bias[r] += scale * row[r]


@parallel
def _forward(y, hidden, layout, weights, x, code, pieces):
    for turn in numba.prange(layout.inputs.size * pieces):
        u, rows = turn // pieces, _piece(turn % pieces, x.shape[0])
        first, first_bias, second, second_bias = _parts(weights, layout, u)
        inner = _span(layout.h_at, u)
        _layer(hidden, first, first_bias, x, rows, inner, _span(layout.x_at, u), code)
        _layer(y, second, second_bias, hidden, rows, _span(layout.y_at, u), inner, code)


@parallel
def _backward_signals(x_grad, y_grad, hidden_grad, layout, weights, y, hidden, code, pieces):
    for turn in numba.prange(layout.inputs.size * pieces):
        u, rows = turn // pieces, _piece(turn % pieces, y.shape[0])
        first, _, second, _ = _parts(weights, layout, u)
        outer, inner = _span(layout.y_at, u), _span(layout.h_at, u)
        _before_activation(y_grad, y, rows, outer, code)
        gemm(hidden_grad[rows, inner], y_grad[rows, outer], second, 1, 0)
        _before_activation(hidden_grad, hidden, rows, inner, code)
        if x_grad is not None:
            gemm(x_grad[rows, _span(layout.x_at, u)], hidden_grad[rows, inner], first, 1, 0)


@parallel
def _backward_weights(weight_grad, layout, y_grad, hidden_grad, hidden, x, pieces):
    one = weight_grad.dtype.type(1)
    for turn in numba.prange(layout.inputs.size * pieces):
        u, k = turn // pieces, turn % pieces
        first, first_bias, second, second_bias = _parts(weight_grad, layout, u)
        x_span, inner = _span(layout.x_at, u), _span(layout.h_at, u)
        rows = _piece(k, layout.outputs[u])
        span = slice(layout.y_at[u] + rows.start, layout.y_at[u] + rows.stop)
        _accumulate(second[rows], second_bias[rows], y_grad, span, hidden, inner, one, one)
        rows = _piece(k, layout.hidden[u])
        span = slice(layout.h_at[u] + rows.start, layout.h_at[u] + rows.stop)
        _accumulate(first[rows], first_bias[rows], hidden_grad, span, x, x_span, one, one)


@parallel
def _step(loss, y, hidden, weights, velocity, y_grad, hidden_grad, packed, layout, x, target, rates, momentum, code):
    parts = packed.shape[0]
    for part in numba.prange(parts):
        for u in range(part * loss.size // parts, (part + 1) * loss.size // parts):
            signals = y, hidden, y_grad, hidden_grad
            loss[u] = _unit(signals, weights, velocity, packed[part], layout, u, x, target, rates[u], momentum, code)


@free
def _unit(signals, weights, velocity, packed, layout, u, x, target, rate, momentum, code):
    """Takes the step of unit u; returns its loss."""
    y, hidden, y_grad, hidden_grad = signals
    n, h, o, batch = layout.inputs[u], layout.hidden[u], layout.outputs[u], x.shape[0]
    x_at, h_at, y_at, first = layout.x_at[u], layout.h_at[u], layout.y_at[u], layout.w_at[u]
    second, ask = first + h * (n + 1), asking(batch, layout.w_at[u + 1], weights)
    seen, inner, outer = _strip(x, x_at, n), _strip(hidden, h_at, h), _strip(y, y_at, o)
    inner_delta, outer_delta = _strip(hidden_grad, h_at, h), _strip(y_grad, y_at, o)
    pack(packed, seen, n, batch)
    ask = multiply(inner, weights, velocity, first, n, h, packed, batch, ask, None)
    for b in range(batch):
        activate(hidden[b, h_at : h_at + h], code)
    pack(packed, inner, h, batch)
    ask = multiply(outer, weights, velocity, second, h, o, packed, batch, ask, target.reshape(target.size))
    for b in range(batch):
        activate(y[b, y_at : y_at + o], code)
    loss = _error(outer_delta, outer, target.reshape(target.size), o, batch)
    for b in range(batch):
        times_slope(y_grad[b, y_at : y_at + o], y[b, y_at : y_at + o], code)
    pull(inner_delta, weights, second, h, o, h, outer_delta, batch)
    for b in range(batch):
        times_slope(hidden_grad[b, h_at : h_at + h], hidden[b, h_at : h_at + h], code)
    ask = move(weights, velocity, second, h, o, outer_delta, inner, batch, -rate, momentum, ask)
    move(weights, velocity, first, n, h, inner_delta, seen, batch, -rate, momentum, ask)
    return loss


@free
def _strip(array, at, size):
    """Returns columns at : at + size as a strip of cpu/vectors/small_gemm.py; the next unit's columns follow."""
    return array.reshape(array.size), at, array.shape[1], size


@free
def _error(delta, y, target, size, batch):
    """Writes y - target; returns half its squared length."""
    out, at, pitch, _ = delta
    squares, minus = zeros(out, BITS), broadcast(out.dtype.type(-1), BITS)
    for b in range(batch):
        for i in range(0, size, lanes(out, BITS)):
            place, left = at + b * pitch + i, size - i
            wrong = multiply_add(minus, load(target, place, left, BITS), load(y[0], place, left, BITS))
            squares = multiply_add(wrong, wrong, squares)
            store(out, place, left, wrong)
    return total(squares) / 2


@parallel
def _step_large(loss, y, hidden, weights, velocity, y_grad, hidden_grad, layout, x, target, rates, momentum, code):
    one, batch = weights.dtype.type(1), x.shape[0]
    for u in numba.prange(loss.size):
        rows = slice(0, batch)
        first, first_bias, second, second_bias = _parts(weights, layout, u)
        x_span, inner, outer = _span(layout.x_at, u), _span(layout.h_at, u), _span(layout.y_at, u)
        _layer(hidden, first, first_bias, x, rows, inner, x_span, code)
        _layer(y, second, second_bias, hidden, rows, outer, inner, code)
        at, size = outer.start, layout.outputs[u]
        loss[u] = _error(_strip(y_grad, at, size), _strip(y, at, size), target.reshape(target.size), size, batch)
        _before_activation(y_grad, y, rows, outer, code)
        gemm(hidden_grad[:, inner], y_grad[:, outer], second, 1, 0)
        _before_activation(hidden_grad, hidden, rows, inner, code)
        if velocity is None:
            _accumulate(second, second_bias, y_grad, outer, hidden, inner, one, -rates[u])
            _accumulate(first, first_bias, hidden_grad, inner, x, x_span, one, -rates[u])
        else:
            v_first, v_first_bias, v_second, v_second_bias = _parts(velocity, layout, u)
            _accumulate(v_second, v_second_bias, y_grad, outer, hidden, inner, momentum, -rates[u])
            _accumulate(v_first, v_first_bias, hidden_grad, inner, x, x_span, momentum, -rates[u])
            unit = _span(layout.w_at, u)
            weights[unit] += velocity[unit]
