"""The fused step of MLPs too many to stay in cache, for one example. Memory-bound: 8 bytes a parameter.

A unit is read from memory once and written once; in between, it stays in the core's own cache. While one unit is computed, the
next one is prefetched, so memory access and arithmetic overlap. Rows are short and unaligned, so the inner loops use the masked
vectors of cpu/vectors/simd.py.
"""

import numba

from cpu.runtime.compiled import called, launched
from cpu.vectors.activation import activate, times_slope
from cpu.vectors.simd import LINE, add_sums, broadcast, lanes, load, multiply_add, prefetch, store, zeros

BITS = 2048  # bits per vector: four of the widest registers
REST = BITS - LINE  # bits after the first cache line

# Without reference counts: each is an atomic addition, and a unit takes hundreds of array slices.
kernel = called(_nrt=False, error_model="numpy", fastmath={"reassoc", "contract"})


@launched(error_model="numpy", fastmath={"reassoc", "contract"}, parallel=True)
def step_online(loss, y, hidden, weights, velocity, y_grad, hidden_grad, layout, x, target, rates, momentum, code):
    """Takes a `step` of cpu/units.py with B = 1, rates (U,) and the activation's code; one unit per iteration."""
    for u in numba.prange(loss.size):
        outer = slice(layout.y_at[u], layout.y_at[u + 1])
        inner = slice(layout.h_at[u], layout.h_at[u + 1])
        signals = (x[0, layout.x_at[u] : layout.x_at[u + 1]], hidden[0, inner], y[0, outer])
        slopes = (hidden_grad[0, inner], y_grad[0, outer])
        at = layout.w_at[u]
        loss[u] = _unit(
            weights, velocity, at, layout.w_at[u + 1] - at, signals, slopes, target[0, outer], rates[u], momentum, code
        )


@kernel
def _unit(weights, velocity, at, size, signals, slopes, target, rate, momentum, code):
    """Takes the step of the unit whose weights start at `at`; the next unit starts `size` further. Returns its loss."""
    x, h, y = signals
    h_delta, y_delta = slopes
    second = at + h.size * (x.size + 1)
    _affine(h, weights, at, x, size)
    activate(h, code)
    _affine(y, weights, second, h, size)
    activate(y, code)
    for i in range(y.size):
        y_delta[i] = y[i] - target[i]
    loss = y.dtype.type(0)
    for i in range(y.size):  # a loop that also wrote would change the order of the sum where arrays are close together
        loss += y_delta[i] * y_delta[i]
    times_slope(y_delta, y, code)
    h_delta[:] = 0
    _descend(weights, velocity, second, h_delta, y_delta, h, rate, momentum, size)
    times_slope(h_delta, h, code)
    _descend(weights, velocity, at, None, h_delta, x, rate, momentum, size)
    return loss / 2


@kernel
def _affine(out, weights, at, x, size):
    """out = matrix x + bias; the matrix starts at `at`, its bias follows. Four rows share each vector of x."""
    n, last = x.size, out.size - 1
    assign(out, weights[at + out.size * n : at + out.size * (n + 1)])
    for r in range(0, out.size, 4):  # rows past the last repeat the last row, and are not written
        r0, r1 = at + r * n, at + min(r + 1, last) * n
        r2, r3 = at + min(r + 2, last) * n, at + min(r + 3, last) * n
        t0 = t1 = t2 = t3 = zeros(x, BITS)
        for i in range(0, n, lanes(x, BITS)):
            for row in (r0, r1, r2, r3):
                prefetch(weights, row + i + size, LINE)
            v = load(x, i, n - i, BITS)
            t0 = multiply_add(load(weights, r0 + i, n - i, BITS), v, t0)
            t1 = multiply_add(load(weights, r1 + i, n - i, BITS), v, t1)
            t2 = multiply_add(load(weights, r2 + i, n - i, BITS), v, t2)
            t3 = multiply_add(load(weights, r3 + i, n - i, BITS), v, t3)
        add_sums(out, r, out.size - r, t0, t1, t2, t3)


@kernel
def assign(out, values):
    """out[:] = values, which do not overlap."""
    for i in range(out.size):
        out[i] = values[i]


@kernel
def _descend(weights, velocity, at, x_delta, delta, x, rate, momentum, size):
    """matrix -= rate delta x^T, and its bias; before, x_delta = matrix^T delta (None: skipped).

    A row is loaded before the row above it is stored. If rows are shorter than a vector, a load that overlaps a masked store
    waits until the store has left the core's buffer. That costs twice the time of all else here.
    """
    n, last = x.size, delta.size - 1
    for i in range(0, n, lanes(x, BITS)):
        v, total, below = load(x, i, n - i, BITS), zeros(x, BITS), load(weights, at + i, n - i, BITS)
        if velocity is not None:
            speed_below = load(velocity, at + i, n - i, BITS)
        for r in range(delta.size):
            place, place_below, change = (
                at + r * n + i,
                at + min(r + 1, last) * n + i,
                broadcast(-rate * delta[r], BITS),
            )
            prefetch(weights, place + size + lanes(x, LINE), REST)  # `_affine` has prefetched the first line
            row, below = below, load(weights, place_below, n - i, BITS)
            if x_delta is not None:
                total = multiply_add(broadcast(delta[r], BITS), row, total)
            if velocity is None:
                row = multiply_add(change, v, row)
            else:
                prefetch(velocity, place + size, BITS)
                speed, speed_below = speed_below, load(velocity, place_below, n - i, BITS)
                speed = multiply_add(change, v, multiply_add(broadcast(momentum, BITS), speed, zeros(x, BITS)))
                store(velocity, place, n - i, speed)
                row = multiply_add(broadcast(x.dtype.type(1), BITS), speed, row)
            store(weights, place, n - i, row)
        if x_delta is not None:
            store(x_delta, i, n - i, total)
    bias = slice(at + delta.size * n, at + delta.size * (n + 1))
    _descend_bias(weights[bias], None if velocity is None else velocity[bias], delta, rate, momentum)


@kernel
def _descend_bias(bias, speed, delta, rate, momentum):
    for r in range(bias.size):
        if speed is None:
            bias[r] -= rate * delta[r]
        else:
            speed[r] = momentum * speed[r] - rate * delta[r]
            bias[r] += speed[r]
