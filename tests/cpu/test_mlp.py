"""Layers of an MLP on the CPU (hybrid/contract.py) against float64, autograd and differences; products exactly."""

import itertools

import numpy as np
import pytest

from cpu import mlp
from tests.support.host import HOST
from tests.support.layers import KINDS, Case

SIZES = [(1, 3, 5), (7, 33, 40), (300, 20, 1030)]  # batch, inputs, outputs: one row, few rows, tiles down and across


@pytest.mark.parametrize(("kind", "sizes"), [*zip(KINDS, itertools.cycle(SIZES))], ids=str)
def test_forward_and_backward(kind, sizes):
    Case(HOST, kind, *sizes).check()


@pytest.mark.parametrize("kind", ["plain", "dropout without bias"])
def test_the_number_of_threads_does_not_change_a_bit(kind, check_threads):
    def run():
        case = Case(HOST, kind, 300, 20, 1030)
        return case.forward(), case.backward(), case.get("x_grad")

    check_threads(run)


# M, N, K: one number; less than one part; cut into rows and columns; terms cut too, unevenly
PRODUCTS = [(1, 1, 1), (7, 33, 40), (600, 1100, 20), (60, 36, 20_001)]


def case(rows, columns, terms):
    """out, a and b as for the gradient of a matrix, of small whole numbers."""
    rng = np.random.default_rng([rows, terms])
    shapes = (terms, rows), (terms, columns), (rows, columns)
    a, b, out = (rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    return out, a.T, b


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_product(sizes, keep):
    out, a, b = case(*sizes)
    expected = keep * out + a.astype(int) @ b.astype(int)
    out[:] = out if keep else np.nan
    work = mlp.product_workspace(np.float32)
    work[:] = np.nan  # nothing is read that has not been written
    mlp.product(out, a, b, keep, work)
    assert np.array_equal(out, expected)


def test_the_number_of_threads_does_not_change_a_bit_of_a_product(check_threads):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((20_001, 60), np.float32).T, rng.standard_normal((20_001, 36), np.float32)

    def run():
        out = np.zeros((60, 36), np.float32)
        mlp.product(out, a, b, 0, mlp.product_workspace(np.float32))
        return [out]

    check_threads(run)
