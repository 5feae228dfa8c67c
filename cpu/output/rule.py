"""How a visit moves a row: SGD or Adagrad, and biases. See `Learned` in the contract.

What is None is left out when a kernel is compiled, so plain SGD does not pay for the rest. Row-wise Adagrad asks for one
number a visit, the square of the gradient's length; it makes a factor on how far the row moves.
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
    """Whether rows move by SGD, without biases."""
    return learned.biases is None and learned.squares is None


def by_row(learned: Any) -> bool:
    """Whether a visit has a number for its row, beside the gradient: the row's own sum of squares, a bias."""
    return learned.biases is not None or (learned.squares is not None and learned.squares.ndim == 1)


@called()
def goes(moves, misses, thread):
    """Where a thread writes how far rows go: moves[thread]; where moves is None, rows go by their misses."""
    if moves is None:
        return misses[thread]
    return moves[thread]


# A visit as a whole: how far its row moves


@inner
def length_squared(table, row):
    """The square of the length of table[row]."""
    squares, width = splat(table.dtype.type(0)), table.shape[1]
    for d in range(0, width, LANES):
        part = load_row(table, row, d, min(LANES, width - d))
        squares = multiply_add(part, part, squares)
    return total(squares)


@inner
def square_of(grads, n, pull, biases, squares):
    """The square of the length of grads[n], and of a bias's gradient, `pull`, at its end; 0 where nobody asks for it."""
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
    """The numbers of a row, its bias among them."""
    if biases is None:
        return width
    return width + 1


@inner
def with_bias(square, biases):
    """The square of the length of a vector, and of the 1 that a bias is multiplied with at its end."""
    if biases is None:
        return square
    return square + ONE


@inner
def paced(push, squares, row, mean):
    """push, of row-wise Adagrad over the root of what it has summed for the row; mean: of the squares of what is pushed."""
    if squares is None:
        return push
    if squares.ndim == 2:
        return push
    squares[row] += push * push * mean
    return push / (math.sqrt(squares[row]) + TINY)


@inner
def move_bias(biases, bias_squares, row, push, move, rate):
    """Move a bias against its gradient -push; move: how far its row goes, which it goes too, unless it has squares."""
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
    """What is pushed is multiplied with it first: the rate, but 1 for Adagrad, which divides before it takes the rate."""
    if squares is None:
        return rate
    if squares.ndim == 1:
        return rate
    return squares.dtype.type(1)


@inner
def paced_by(step, moves, thread, place):
    """step * moves[thread, place]; moves None: all of them are 1."""
    if moves is None:
        return step
    return step * moves[thread, place]


@inner
def pushed(w, push, along, squares, row, d, count, rate):
    """Columns d to d + count of a row, `w`, after a visit: they move by push * along; along: times `scale_of`."""
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
    """Move a row against share * grads[n], and its bias against share * pull; square: `square_of` them."""
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


# Rows that move once a batch, against the gradient summed over it, which is a matrix product. Plain SGD is the product itself,
# added to the rows. Otherwise the gradient is written down first.


@called()
def pull_biases(out, biases, misses):
    """out[j] = the sum of misses[b, j] over b: the gradient of the biases, if there are any."""
    if biases is not None:
        out[:] = 0
        for b in range(misses.shape[0]):
            for j in range(misses.shape[1]):
                out[j] += misses[b, j]


@called()
def move_together(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, misses, hidden, sign, rate):
    """Move rows begin:end against sign * misses @ hidden, and their biases against sign * bias_pulls.

    misses (end - begin, B); pulls (end - begin or more, D) is scratch.
    """
    if squares is None:
        gemm(rows[begin:end], misses, hidden, -sign * rate, 1.0)
        if biases is not None:
            for j in range(end - begin):
                biases[begin + j] -= sign * rate * bias_pulls[j]
    else:
        gemm(pulls[: end - begin], misses, hidden, sign, 0.0)
        move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, sign, rate)


@called()
def move_by(rows, biases, squares, bias_squares, begin, end, pulls, bias_pulls, sign, rate):
    """Move rows begin:end against pulls (end - begin or more, D), and their biases against sign * bias_pulls."""
    for j in range(end - begin):
        pull = pulls.dtype.type(_pull(biases, bias_pulls, j) * sign)
        square = square_of(pulls, j, pull, biases, squares)
        one = pulls.dtype.type(1)
        descend(rows, biases, squares, bias_squares, begin + j, pulls, j, pull, square, one, rate)


@called()
def _pull(biases, bias_pulls, j):
    """The gradient of a bias; 0 where there is none."""
    if biases is None:
        return 0.0
    return bias_pulls[j]
