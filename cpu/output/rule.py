"""The update of a row and its bias by a visit: SGD or Adagrad. See `Learned` in the contract.

Options that are None are left out when a kernel is compiled, so plain SGD does not pay for the rest. Row-wise Adagrad needs one
number per visit, the squared length of the gradient, from which it derives a factor of the update.
"""

import math
from typing import Any

import numpy as np

from cpu.runtime.compiled import called, inlined
from cpu.vectors.blas import gemm
from cpu.vectors.simd import LANES, add, divide, load_row, multiply, multiply_add, splat, square_root, store_row, total

TINY = np.float32(1e-10)  # added to the root of a sum of squares, as in PyTorch
ZERO, ONE = np.float32(0), np.float32(1)

inner = inlined(error_model="numpy")


def plain(learned: Any) -> bool:
    """True if rows use SGD, without biases."""
    return learned.biases is None and learned.squares is None


def by_row(learned: Any) -> bool:
    """True if a visit needs a number of its own per row beside the gradient: row-wise squares or a bias."""
    return learned.biases is not None or (learned.squares is not None and learned.squares.ndim == 1)


@called()
def goes(moves, misses, thread):
    """Returns the thread's array of update factors, moves[thread], or its errors if moves is None."""
    if moves is None:
        return misses[thread]
    return moves[thread]


# A whole visit: the size of its row's update


@inner
def length_squared(table, row):
    """Returns the squared length of table[row]."""
    squares, width = splat(table.dtype.type(0)), table.shape[1]
    for d in range(0, width, LANES):
        part = load_row(table, row, d, min(LANES, width - d))
        squares = multiply_add(part, part, squares)
    return total(squares)


@inner
def square_of(grads, n, pull, biases, squares):
    """Returns the squared length of grads[n] with a bias's gradient, `pull`, appended; 0 unless row-wise Adagrad uses it."""
    if squares is None:
        return grads.dtype.type(0)
    if squares.ndim == 2:
        return grads.dtype.type(0)
    square = length_squared(grads, n)
    if biases is None:
        return square
    return square + pull * pull


@inner
def size(width, biases):
    """Returns the numbers of a row, including its bias."""
    if biases is None:
        return width
    return width + 1


@inner
def with_bias(square, biases):
    """Returns the squared length of a vector with the 1 appended that the bias is multiplied with."""
    if biases is None:
        return square
    return square + ONE


@inner
def paced(push, squares, row, mean):
    """Returns push, in row-wise Adagrad over the root of the row's squares; mean: of the squares of the pushed vector."""
    if squares is None:
        return push
    if squares.ndim == 2:
        return push
    squares[row] += push * push * mean
    return push / (math.sqrt(squares[row]) + TINY)


@inner
def move_bias(biases, bias_squares, row, push, move, rate):
    """Updates a bias by its negative gradient push; move: the factor of its row's update, used unless it has squares."""
    if biases is None:
        return
    if bias_squares is None:
        biases[row] += rate * move
    else:
        bias_squares[row] += push * push
        biases[row] += rate * (push / (math.sqrt(bias_squares[row]) + TINY))


# Some columns of a row


@inner
def scale_of(rate, squares):
    """Returns the first factor of an update: the rate, but 1 for Adagrad, which divides before it applies the rate."""
    if squares is None:
        return rate
    if squares.ndim == 1:
        return rate
    return squares.dtype.type(1)


@inner
def pushed(w, push, along, squares, row, d, count, rate):
    """Returns columns d to d + count of a row, `w`, after its update by push * along; along: already times `scale_of`."""
    if squares is None:
        return multiply_add(push, along, w)
    if squares.ndim == 1:
        return multiply_add(push, along, w)
    g = multiply(push, along)
    s = multiply_add(g, g, load_row(squares, row, d, count))
    store_row(squares, row, d, s, count)
    return multiply_add(splat(rate), divide(g, add(square_root(s), splat(squares.dtype.type(TINY)))), w)


@inner
def descend(rows, biases, squares, bias_squares, row, grads, n, pull, square, share, rate):
    """Updates a row with the gradient share * grads[n], and its bias with share * pull; square: their `square_of`."""
    width = rows.shape[1]
    push = -share
    move = paced(push, squares, row, square / grads.dtype.type(size(width, biases)))
    move_bias(biases, bias_squares, row, push * pull, move * pull, rate)
    scale = splat(scale_of(rate, squares))
    for d in range(0, width, LANES):
        count = min(LANES, width - d)
        along = multiply(scale, load_row(grads, n, d, count))
        w = load_row(rows, row, d, count)
        store_row(rows, row, d, pushed(w, splat(move), along, squares, row, d, count, rate), count)


# Rows that are updated once per batch, with the summed gradient, a matrix product. For plain SGD the product accumulates into
# the rows. Otherwise the gradient is materialised first.


@called()
def pull_biases(out, biases, misses):
    """out[j] = the sum of misses[b, j] over b: the gradient of the biases, if there are any."""
    if biases is not None:
        out[:] = 0
        for b in range(misses.shape[0]):
            for j in range(misses.shape[1]):
                out[j] += misses[b, j]


@called()
def move_together(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, misses, hidden, rate):
    """Updates rows begin:end with the gradient misses @ hidden, and their biases with bias_pulls.

    misses (end - begin, B); pulls (end - begin or more, D) is scratch.
    """
    if squares is None:
        gemm(rows[begin:end], misses, hidden, -rate, 1.0)
        if biases is not None:
            for j in range(end - begin):
                biases[begin + j] -= rate * bias_pulls[j]
    else:
        gemm(pulls[: end - begin], misses, hidden, 1.0, 0.0)
        move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, rate)


@called()
def move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, rate):
    """Updates rows begin:end with the gradient pulls (end - begin or more, D), and their biases with bias_pulls."""
    for j in range(end - begin):
        pull = pulls.dtype.type(_pull(biases, bias_pulls, j))
        square = square_of(pulls, j, pull, biases, squares)
        one = pulls.dtype.type(1)
        descend(rows, biases, squares, bias_squares, begin + j, pulls, j, pull, square, one, rate)


@called()
def _pull(biases, bias_pulls, j):
    """Returns the gradient of a bias; 0 without biases."""
    if biases is None:
        return 0.0
    return bias_pulls[j]
