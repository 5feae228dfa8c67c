"""Tables of vectors, one row per id, as in an embedding. See `Rows` in the contract.

Gathers are parallel over chunks of the output. A scatter adds to the same row many times: ids are Zipf-distributed, so a few
rows take most of the traffic. So every row has an owner: each thread reads all ids and adds, in order, to its own rows. A row
receives the additions of a serial loop in the same order at any thread count, without locks, sorting or scratch.
"""

from typing import Any

import numba

from cpu.output.rule import ZERO, descend, square_of
from cpu.runtime.compiled import Array, called, inlined, launched
from cpu.runtime.memory import prefetch_row

AHEAD = 8  # prefetch distance in ids


def gather(out: Array, table: Array, ids: Array) -> None:
    """out[n] = table[ids[n]]; out (N, D), ids (N,)."""
    _gather(out, table, ids, numba.get_num_threads())


def scatter(learned: Any, ids: Array, grad: Array, rate: float) -> None:
    """Updates row ids[n] with grad[n] (N, D), in the order of n: bit-identical at any number of threads. No biases."""
    table, squares = learned.rows, learned.squares
    _scatter(table, squares, ids, grad, grad.dtype.type(rate), numba.get_num_threads())


def gather_mean(out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
    """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], or their sum weighted by `values`. See the contract."""
    _gather_mean(out, table, bag_at, ids, values, numba.get_num_threads())


def scatter_mean(learned: Any, bag_at: Array, ids: Array, values: Array | None, grad: Array, rate: float) -> None:
    """Reverses gather_mean: updates every row of bag b with its share of grad[b], in the order of b. No biases."""
    table, squares = learned.rows, learned.squares
    _scatter_mean(table, squares, bag_at, ids, values, grad, grad.dtype.type(rate), numba.get_num_threads())


@launched(parallel=True)
def _gather(out, table, ids, threads):
    size = -(-ids.size // threads)
    for thread in numba.prange(threads):
        for n in range(thread * size, min((thread + 1) * size, ids.size)):
            if n + AHEAD < ids.size:
                prefetch_row(table, ids[n + AHEAD])
            row = ids[n]
            for d in range(out.shape[1]):
                out[n, d] = table[row, d]


@launched(parallel=True)
def _scatter(table, squares, ids, grad, rate, threads):
    for thread in numba.prange(threads):
        for n in range(ids.size):
            if n + AHEAD < ids.size and owner(ids[n + AHEAD], threads) == thread:
                prefetch_row(table, ids[n + AHEAD])
                prefetch_row(squares, ids[n + AHEAD])
            if owner(ids[n], threads) == thread:
                square = square_of(grad, n, ZERO, None, squares)
                move_row(table, squares, ids[n], grad, n, square, rate)


@inlined()
def owner(row, threads):
    """Returns the thread that updates a row. Every other turn is reversed: if frequent rows come first, no thread gets the most
    frequent row of every turn."""
    turn, place = row // threads, row % threads
    return threads - 1 - place if turn & 1 else place


@launched(parallel=True, error_model="numpy")
def _gather_mean(out, table, bag_at, ids, values, threads):
    size = -(-out.shape[0] // threads)
    for thread in numba.prange(threads):
        for b in range(thread * size, min((thread + 1) * size, out.shape[0])):
            for d in range(out.shape[1]):
                out[b, d] = 0
            for n in range(bag_at[b], bag_at[b + 1]):
                if n + AHEAD < ids.size:
                    prefetch_row(table, ids[n + AHEAD])
                _add(out, b, table, ids[n], _share(out, values, n, 1))
            many = out.dtype.type(_divisor(values, bag_at[b + 1] - bag_at[b]))
            for d in range(out.shape[1]):
                out[b, d] /= many


@launched(parallel=True, error_model="numpy")
def _scatter_mean(table, squares, bag_at, ids, values, grad, rate, threads):
    for thread in numba.prange(threads):
        for b in range(grad.shape[0]):
            size = bag_at[b + 1] - bag_at[b]
            square = square_of(grad, b, ZERO, None, squares)
            for n in range(bag_at[b], bag_at[b + 1]):
                if n + AHEAD < ids.size and owner(ids[n + AHEAD], threads) == thread:
                    prefetch_row(table, ids[n + AHEAD])
                    prefetch_row(squares, ids[n + AHEAD])
                if owner(ids[n], threads) == thread:
                    share, step = _share(grad, values, n, size), _step(grad, rate, values, n, size)
                    _visit(table, squares, ids[n], grad, b, square, share, step, rate)


@called(error_model="numpy")
def _share(like, values, n, size):
    """Returns the weight of the n-th id in its bag, in the dtype of `like`."""
    if values is None:
        return like.dtype.type(1) / like.dtype.type(size)
    return values[n]


@called(error_model="numpy")
def _step(like, rate, values, n, size):
    """Returns rate times the weight, rounded once."""
    if values is None:
        return rate / like.dtype.type(size)
    return rate * values[n]


@called()
def _divisor(values, size):
    """Returns the divisor of the sum over a bag."""
    if values is None:
        return max(size, 1)
    return 1


@inlined()
def move_row(table, squares, row, grad, n, square, rate):
    """Updates a row with grad[n]; square: `square_of` it."""
    _visit(table, squares, row, grad, n, square, grad.dtype.type(1), rate, rate)


@called()
def _visit(table, squares, row, grad, n, square, share, step, rate):
    """Updates a row with share * grad[n]; step: rate * share, the factor of plain SGD."""
    if squares is None:
        _add(table, row, grad, n, -step)
    else:
        descend(table, None, squares, None, row, grad, n, ZERO, square, share, rate)


@called(fastmath={"contract"})
def _add(table, row, values, n, scale):
    for d in range(values.shape[1]):
        table[row, d] += scale * values[n, d]
