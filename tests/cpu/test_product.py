"""Products cut into parts, against whole numbers, whose products and sums float32 holds exactly in any order."""

import numba
import numpy as np
import pytest

from cpu import mlp

# M, N, K: one number; less than one part; cut into rows and columns; terms cut too, unevenly
SIZES = [(1, 1, 1), (7, 33, 40), (600, 1100, 20), (60, 36, 20_001)]


def case(rows, columns, terms):
    """out, a and b as for the gradient of a matrix, of small whole numbers."""
    rng = np.random.default_rng([rows, terms])
    a, b, out = (
        rng.integers(-3, 4, shape).astype(np.float32) for shape in ((terms, rows), (terms, columns), (rows, columns))
    )
    return out, a.T, b


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_product(sizes, keep):
    out, a, b = case(*sizes)
    expected = keep * out + a.astype(int) @ b.astype(int)
    out[:] = out if keep else np.nan
    work = mlp.product_workspace(np.float32)
    work[:] = np.nan  # nothing is read that has not been written
    mlp.product(out, a, b, keep, work)
    assert np.array_equal(out, expected)


def test_the_number_of_threads_does_not_change_a_bit(threads):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((20_001, 60), np.float32).T, rng.standard_normal((20_001, 36), np.float32)

    def run():
        out = np.zeros((60, 36), np.float32)
        mlp.product(out, a, b, 0, mlp.product_workspace(np.float32))
        return out.tobytes()

    found = run()
    numba.set_num_threads(1)
    assert found == run()
