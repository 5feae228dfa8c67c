"""Products of a small matrix with a batch, by the tiles of cpu/vectors/tile.py: small whole numbers, whose sums are exact."""

import numba
import numpy as np
import pytest

from cpu.runtime import memory
from cpu.vectors.small_gemm import asking, move, multiply, pack, pull, room


@numba.njit(_nrt=False)
def visit(out, back, weights, velocity, packed, x, delta, sizes, rate, momentum):
    """The three products, of arrays whose rows begin and end with a column that belongs to others."""
    batch, n, rows, pulled = sizes
    seen, wrong = (x.reshape(x.size), 1, n + 2, n), (delta.reshape(delta.size), 1, rows + 2, rows)
    ask = asking(batch, weights.size, weights)
    pack(packed, seen, n, batch)
    ask = multiply((out.reshape(out.size), 1, rows + 2, rows), weights, velocity, 3, n, rows, packed, batch, ask, None)
    pull((back.reshape(back.size), 1, n + 2, n), weights, 3, n, rows, pulled, wrong, batch)
    return move(weights, velocity, 3, n, rows, wrong, seen, batch, rate, momentum, ask)


SIZES = [(1, 1, 1), (2, 3, 4), (3, 5, 49), (4, 130, 3), (5, 150, 13)]
SIZES += [(8, 49, 150), (9, 16, 8), (16, 64, 5), (33, 33, 12)]


def whole(rng, *shape):
    """Numbers of -4 to 4."""
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize(("batch", "n", "rows"), SIZES)
@pytest.mark.parametrize("pulled", [1, 0.5])
def test_the_products_are_exact_and_write_nothing_else(batch, n, rows, pulled):
    rng = np.random.default_rng(batch)
    pulled = max(1, int(pulled * n))
    x, delta = whole(rng, batch, n + 2), whole(rng, batch, rows + 2)
    weights, velocity = whole(rng, 2, rows * (n + 1) + 3 + 7)
    out, back = whole(rng, batch, rows + 2), whole(rng, batch, n + 2)
    expected_out, expected_back, moved, speed = out.copy(), back.copy(), weights.copy(), velocity.copy()
    part = slice(3, 3 + rows * (n + 1))
    matrix, bias = np.split(weights[part], [rows * n])
    matrix = matrix.reshape(rows, n).copy()
    expected_out[:, 1:-1] = x[:, 1:-1] @ matrix.T + bias
    expected_back[:, 1 : 1 + pulled] = delta[:, 1:-1] @ matrix[:, :pulled]
    gradient = np.append(delta[:, 1:-1].T @ x[:, 1:-1], delta[:, 1:-1].sum(0))
    speed[part] = 0.5 * speed[part] - 2 * gradient
    moved[part] += speed[part]

    packed = memory.empty((room(batch, n),), np.float32)
    packed[:] = np.nan  # what is left out of it shows
    visit(out, back, weights, velocity, packed, x, delta, (batch, n, rows, pulled), np.float32(-2), np.float32(0.5))
    np.testing.assert_array_equal(out, expected_out)
    np.testing.assert_array_equal(back, expected_back)
    np.testing.assert_array_equal(velocity, speed)
    np.testing.assert_array_equal(weights, moved)
