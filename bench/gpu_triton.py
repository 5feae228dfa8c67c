"""The fused online step of units of one size in Triton: a rival of gpu/units.cu, written as one would write it in Triton."""

import triton
import triton.language as tl


def step(parts, x, target, rate: float) -> None:
    """Each unit moves along the gradient of half its squared error; both layers are logistic.

    parts  first matrices (U, H, N), their biases (U, 1, H), second (U, O, H), their biases (U, 1, O): float32, written
    x (U, 1, N), target (U, 1, O): float32
    """
    (units, hidden, inputs), outputs = parts[0].shape, parts[2].shape[1]
    sizes = (inputs, hidden, outputs)
    widths = dict(zip("nho", map(triton.next_power_of_2, sizes), strict=True))
    _unit[(units,)](*parts, x, target, rate, *sizes, **widths, num_warps=8)


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit  # type: ignore[untyped-decorator]
def _unit(w, wb, v, vb, x, target, rate, N, H, O, n: tl.constexpr, h: tl.constexpr, o: tl.constexpr):
    """One unit; N, H, O inputs, hidden and outputs, n, h, o the powers of two that hold them."""
    unit = tl.program_id(0).to(tl.int64)
    i, j, k = tl.arange(0, n), tl.arange(0, h), tl.arange(0, o)
    first = w + unit * H * N + j[:, None] * N + i[None, :]
    second = v + unit * O * H + k[:, None] * H + j[None, :]
    in_first, in_second = (j[:, None] < H) & (i[None, :] < N), (k[:, None] < O) & (j[None, :] < H)
    weights, more = tl.load(first, in_first, 0.0), tl.load(second, in_second, 0.0)
    bias, more_bias = tl.load(wb + unit * H + j, j < H, 0.0), tl.load(vb + unit * O + k, k < O, 0.0)
    signals, wanted = tl.load(x + unit * N + i, i < N, 0.0), tl.load(target + unit * O + k, k < O, 0.0)

    inner = _sigmoid(tl.sum(weights * signals[None, :], 1) + bias)
    y = _sigmoid(tl.sum(more * inner[None, :], 1) + more_bias)
    delta = rate * (y - wanted) * y * (1 - y)
    pulled = tl.sum(more * delta[:, None], 0) * inner * (1 - inner)

    tl.store(second, more - delta[:, None] * inner[None, :], in_second)
    tl.store(vb + unit * O + k, more_bias - delta, k < O)
    tl.store(first, weights - pulled[:, None] * signals[None, :], in_first)
    tl.store(wb + unit * H + j, bias - pulled, j < H)
