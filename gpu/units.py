"""Collections of MLPs on a GPU: the `Units` contract. The kernels of units.cu do small batches, cuBLAS GEMMs the others."""

from typing import Any

from gpu import device, optimiser
from gpu.plan import MOST, Plan
from gpu.runtime import blas, kernels
from gpu.runtime.array import Array
from gpu.runtime.blas import Matrix

CODES = {"logistic": 0, "rational": 1, "tanh": 2, "relu": 3, "rational2023": 4}  # as in activation.cuh
FEW = 32  # with fewer units a block per unit leaves most of a device idle


def plan(layout: Any) -> Plan:
    """Copies the layout to the device and plans each unit's shared memory."""
    return Plan(device.current().device, layout)


def forward(y: Array, hidden: Array, layout: Plan, weights: Array, x: Array, activation: str) -> None:
    """Writes hidden and y."""
    code = CODES[activation]
    if not _visited(layout, len(x)):
        _layer(hidden, layout, weights, x, code, first=True)
        _layer(y, layout, weights, hidden, code, first=False)
        return
    arguments = (y, hidden, layout.everyone, weights, x, code, *_extent(x, hidden, y))
    shared = int(layout.shared(len(x), 256).max())
    kernels.launch(__file__, "forward", "PPPPPiiqqq", len(layout), 256, *arguments, shared=shared)


def backward(
    x_grad: Array | None, weight_grad: Array, y_grad: Array, hidden_grad: Array, layout: Plan, weights: Array,
    y: Array, hidden: Array, x: Array, activation: str,
) -> None:  # fmt: skip
    """See the contract."""
    code = CODES[activation]
    if not _visited(layout, len(x)):
        _signals(x_grad, y_grad, hidden_grad, layout, weights, y, hidden, code)
        _gradient(weight_grad, layout, y_grad, hidden, first=False, scale=1, keep=1)
        _gradient(weight_grad, layout, hidden_grad, x, first=True, scale=1, keep=1)
        return
    arguments = (x_grad, weight_grad, y_grad, hidden_grad, layout.everyone, weights, y, hidden, x, code)
    kinds, shared = "PPPPPPPPPiiqqq", int(layout.shared(len(x), 256, backward=True).max())
    kernels.launch(__file__, "backward", kinds, len(layout), 256, *arguments, *_extent(x, hidden, y), shared=shared)


def update(weights: Array, velocity: Array | None, weight_grad: Array, rate: float, momentum: float) -> None:
    """See the contract; arrays have the alignment of device allocations."""
    optimiser.descend(weights, velocity, weight_grad, None, rate, momentum)


def step(
    loss: Array, y: Array, hidden: Array, weights: Array, velocity: Array | None, y_grad: Array, hidden_grad: Array,
    layout: Plan, x: Array, target: Array, rate: float | Array, momentum: float, activation: str,
) -> None:  # fmt: skip
    """Takes one step, fused for small batches; see the contract.

    If shared memory holds a unit's weights (B > 1: those of every unit) its result is bit-identical to a step of it alone.
    """
    code, batch = CODES[activation], len(x)
    bins = layout.bins(batch) if batch <= MOST else None
    if bins is None:
        _step_by_gemm(loss, y, hidden, weights, velocity, y_grad, hidden_grad, layout, x, target, rate, momentum, code)
        return
    written = (loss, y, hidden, weights, velocity, y_grad, hidden_grad)
    moving = (*_rates(rate), momentum, code)
    extent = _extent(x, hidden, y)
    for bin in bins:
        name = f"step_{bin.kind}{'_many' * (batch > 1)}{'_momentum' * (velocity is not None)}"
        arguments = (*written, bin.units, x, target, *moving, *extent)
        kernels.launch(__file__, name, "PPPPPPPPPPPffiiqqq", bin.many, bin.threads, *arguments, shared=bin.shared)


def _rates(rate: float | Array) -> tuple[Array | None, float]:
    """Returns the rates per unit and the common rate, as kernel arguments."""
    return (rate, 0.0) if isinstance(rate, Array) else (None, rate)


def _visited(layout: Plan, batch: int) -> bool:
    """True if a kernel with a block per unit is used, rather than a GEMM."""
    fits = layout.shared(batch, 256, backward=True).max() <= layout.device.shared_block
    return batch <= MOST and len(layout) >= FEW and bool(fits)


def _extent(x: Array, hidden: Array, y: Array) -> tuple[int, int, int, int]:
    """Returns B, X, H, Y."""
    return len(x), x.shape[1], hidden.shape[1], y.shape[1]


def _pieces(count: int) -> int:
    """Returns the number of 256-thread blocks that loop over `count` numbers: at most as many as fill the device."""
    return min(-(-count // 256), 16 * int(device.current().device.multiprocessors))


# Products over the whole batch: one batched GEMM if all units have the same sizes, else one GEMM per unit.


def _matrices(layout: Plan, weights: Array, first: bool) -> list[Matrix]:
    """Returns the first or second layer's matrices in an array laid out like the weights: one per unit, or one batched."""
    n, h, o = layout.sizes
    rows, columns = (h, n) if first else (o, h)
    at = layout.layout.w_at[:-1] + (0 if first else h * (n + 1))
    return _stack(layout, weights, at, rows, columns, columns)


def _columns(layout: Plan, signals: Array, which: int) -> list[Matrix]:
    """Returns each unit's columns in x (which = 0), hidden (1) or y (2), each (B, pitch)."""
    at = layout.layout[4 + which][:-1]
    batch, pitch = signals.shape
    return _stack(layout, signals, at, [batch] * len(layout), layout.sizes[which], [pitch] * len(layout))


def _stack(layout: Plan, array: Array, at: Any, rows: Any, columns: Any, pitch: Any) -> list[Matrix]:
    if layout.uniform:
        step = int(at[1] - at[0]) if len(at) > 1 else 0
        return [Matrix(array.pointer + 4 * int(at[0]), int(rows[0]), int(columns[0]), int(pitch[0]), step, len(at))]
    parts = zip(at, rows, columns, pitch, strict=True)
    return [Matrix(array.pointer + 4 * int(a), int(r), int(c), int(p)) for a, r, c, p in parts]


def _layer(out: Array, layout: Plan, weights: Array, x: Array, code: int, first: bool) -> None:
    """out = activation(x weights^T + bias)."""
    which = 1 if first else 2
    products = (_columns(layout, out, which), _columns(layout, x, which - 1), _matrices(layout, weights, first))
    for target, inputs, matrix in zip(*products, strict=True):
        blas.gemm(target, inputs, matrix, b_transposed=True)
    sizes, at, bias = _bias(layout, first)
    grid = (len(layout), _pieces(out.size // len(layout)))
    arguments = (out, sizes, at, bias, weights, code, len(out), out.shape[1])
    kernels.launch(__file__, "finish", "PPPPPiiq", grid, 256, *arguments)


def _bias(layout: Plan, first: bool) -> tuple[Array, Array, Array]:
    """Returns each unit's number of rows in one layer, and the starts of its signals and biases."""
    there = layout.fields
    return (there.hidden, there.h_at, layout.first_bias) if first else (there.outputs, there.y_at, layout.second_bias)


def _signals(
    x_grad: Array | None, y_grad: Array, hidden_grad: Array, layout: Plan, weights: Array, y: Array, hidden: Array, code: int,
) -> None:  # fmt: skip
    """y_grad becomes the gradient before the activation; hidden_grad, and x_grad if requested, follow from it."""
    _times_slope(y_grad, y, code)
    products = (_columns(layout, hidden_grad, 1), _columns(layout, y_grad, 2), _matrices(layout, weights, False))
    for target, delta, matrix in zip(*products, strict=True):
        blas.gemm(target, delta, matrix)
    _times_slope(hidden_grad, hidden, code)
    if x_grad is not None:
        products = (_columns(layout, x_grad, 0), _columns(layout, hidden_grad, 1), _matrices(layout, weights, True))
        for target, delta, matrix in zip(*products, strict=True):
            blas.gemm(target, delta, matrix)


def _times_slope(delta: Array, values: Array, code: int) -> None:
    kernels.launch(__file__, "times_slope", "PPiq", _pieces(delta.size), 256, delta, values, code, delta.size)


def _gradient(weights: Array, layout: Plan, delta: Array, x: Array, first: bool, scale: float, keep: float) -> None:
    """matrix <- keep matrix + scale delta^T x over the batch; the same for the bias, whose input is 1."""
    which = 1 if first else 2
    products = (_matrices(layout, weights, first), _columns(layout, delta, which), _columns(layout, x, which - 1))
    for matrix, rows, inputs in zip(*products, strict=True):
        blas.gemm(matrix, rows, inputs, alpha=scale, beta=keep, a_transposed=True)
    sizes, at, bias = _bias(layout, first)
    grid = (len(layout), _pieces(delta.shape[1] // len(layout)))
    arguments = (weights, sizes, at, bias, delta, scale, keep, len(delta), delta.shape[1])
    kernels.launch(__file__, "bias", "PPPPPffiq", grid, 256, *arguments)


def _step_by_gemm(
    loss: Array, y: Array, hidden: Array, weights: Array, velocity: Array | None, y_grad: Array, hidden_grad: Array,
    layout: Plan, x: Array, target: Array, rate: float | Array, momentum: float, code: int,
) -> None:  # fmt: skip
    _layer(hidden, layout, weights, x, code, first=True)
    _layer(y, layout, weights, hidden, code, first=False)
    arguments = (loss, y_grad, layout.fields.outputs, layout.fields.y_at, y, target, len(y), y.shape[1])
    kernels.launch(__file__, "miss", "PPPPPPiq", len(layout), 256, *arguments)
    _signals(None, y_grad, hidden_grad, layout, weights, y, hidden, code)
    learner, keep = (weights, 1) if velocity is None else (velocity, momentum)
    for delta, inputs, first in ((y_grad, hidden, False), (hidden_grad, x, True)):
        scale = 1.0 if isinstance(rate, Array) else -rate
        change = _changes(delta, layout, rate, first) if isinstance(rate, Array) else delta
        _gradient(learner, layout, change, inputs, first=first, scale=scale, keep=keep)
    if velocity is not None:
        kernels.launch(__file__, "add", "PPq", _pieces(weights.size), 256, weights, velocity, weights.size)


def _changes(delta: Array, layout: Plan, rates: Array, first: bool) -> Array:
    """Returns -rate delta of each unit, in scratch memory: a batched GEMM has a single factor."""
    out = device.scratch("units.changes", delta.shape, delta.dtype)
    sizes, at, _ = _bias(layout, first)
    grid = (len(layout), _pieces(delta.size // len(layout)))
    kernels.launch(__file__, "changes", "PPPPPiq", grid, 256, out, sizes, at, delta, rates, len(delta), delta.shape[1])
    return out
