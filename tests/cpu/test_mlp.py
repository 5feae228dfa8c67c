"""Layers of an MLP on the CPU (hybrid/contract.py) against float64, autograd and differences; products exactly."""

import itertools

import numpy as np
import pytest

from bench.oracles.units import close
from cpu import mlp
from tests.support import layers
from tests.support.layers import KINDS

SIZES = [(1, 3, 5), (7, 33, 40), (300, 20, 1030)]  # batch, inputs, outputs: one row, few rows, tiles down and across
KEY = 2**63 - 12345


class Case:
    """Random arrays of one layer, which does not begin the weights."""

    def __init__(self, kind, batch, inputs, outputs, dtype=np.float32):
        rng = np.random.default_rng([batch, inputs])
        self.layer = layers.layer(kind, inputs, outputs, at=3)
        self.weights = rng.normal(0, 0.3, 3 + layers.size(self.layer)).astype(dtype)
        self.weight_grad = np.ones_like(self.weights)
        self.x = rng.normal(size=(batch, self.layer.inputs)).astype(dtype)
        self.out_grad = rng.normal(size=(batch, outputs)).astype(dtype)
        self.x_grad = np.full_like(self.x, np.nan)
        self.out = np.full((batch, outputs), np.nan, dtype)
        self.work = mlp.workspace(outputs + 2, dtype)

    def forward(self, key=KEY):
        mlp.forward(self.out, self.layer, self.weights, self.x, key)

    def backward(self, key=KEY, x_grad=True):
        written = (self.x_grad if x_grad else None, self.weight_grad, self.out_grad, self.work)
        mlp.backward(*written, self.layer, self.weights, self.out, self.x, key)


@pytest.mark.parametrize(("kind", "sizes"), [*zip(KINDS, itertools.cycle(SIZES))], ids=str)
def test_forward_and_backward(kind, sizes):
    case, dtype = Case(kind, *sizes), np.float32
    out_grad = case.out_grad.astype(float)
    expected = layers.forward(case.layer, case.weights, case.x, KEY)
    case.forward()
    close(case.out, expected, dtype, 64)
    x_grad, weight_grad = layers.backward(case.layer, case.weights, case.x, out_grad, KEY)
    case.backward()
    close(case.x_grad, x_grad, dtype, 256)
    close(case.weight_grad, 1 + weight_grad, dtype, 64 * len(case.x))


@pytest.mark.parametrize("kind", ["plain", "dropout without bias"])
def test_the_number_of_threads_does_not_change_a_bit(kind, check_threads):
    def run():
        case = Case(kind, 300, 20, 1030)
        case.forward()
        case.backward()
        return case.out, case.x_grad, case.weight_grad

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
