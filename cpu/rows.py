"""Tables of vectors, one row an id, as of an embedding. See `Rows` in the contract.

Gathers are parallel over chunks of the output. A scatter adds to the same row many times: ids are Zipf-distributed, so a few
rows take most of the traffic. So every row has an owner: a thread reads all ids and adds, in their order, to the rows that
it owns. A row gets what a serial loop would add, in the same order at any number of threads, without locks, sorting or
scratch.
"""

from typing import Any

import numba

from cpu.array import Array
from cpu.prefetch import prefetch_row

AHEAD = 8  # ids between asking for a row and adding to it


def gather(out: Array, table: Array, ids: Array) -> None:
    """out[n] = table[ids[n]]; out (N, D), ids (N,)."""
    _gather(out, table, ids, numba.get_num_threads())


def scatter(learned: Any, ids: Array, grad: Array, rule: Any) -> None:
    """Move row ids[n] against grad[n] (N, D), in the order of n: the same bits at any number of threads."""
    table = learned.rows
    _scatter(table, ids, grad, -table.dtype.type(rule.rate), numba.get_num_threads())


def gather_mean(out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
    """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64."""
    _gather_mean(out, table, bag_at, ids, numba.get_num_threads())


def scatter_mean(learned: Any, bag_at: Array, ids: Array, values: Array | None, grad: Array, rule: Any) -> None:
    """The reverse of gather_mean: every row of bag b moves against grad[b] / size(b), in the order of b."""
    table = learned.rows
    _scatter_mean(table, bag_at, ids, grad, -table.dtype.type(rule.rate), numba.get_num_threads())


@numba.njit(parallel=True, cache=True, nogil=True)
def _gather(out, table, ids, threads):
    size = -(-ids.size // threads)
    for thread in numba.prange(threads):
        for n in range(thread * size, min((thread + 1) * size, ids.size)):
            if n + AHEAD < ids.size:
                prefetch_row(table, ids[n + AHEAD])
            row = ids[n]
            for d in range(out.shape[1]):
                out[n, d] = table[row, d]


@numba.njit(parallel=True, cache=True, nogil=True)
def _scatter(table, ids, grad, scale, threads):
    for thread in numba.prange(threads):
        for n in range(ids.size):
            if n + AHEAD < ids.size and ids[n + AHEAD] % threads == thread:
                prefetch_row(table, ids[n + AHEAD])
            if ids[n] % threads == thread:
                _add(table, ids[n], grad, n, scale)


@numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def _gather_mean(out, table, bag_at, ids, threads):
    size = -(-out.shape[0] // threads)
    for thread in numba.prange(threads):
        for b in range(thread * size, min((thread + 1) * size, out.shape[0])):
            for d in range(out.shape[1]):
                out[b, d] = 0
            for n in range(bag_at[b], bag_at[b + 1]):
                if n + AHEAD < ids.size:
                    prefetch_row(table, ids[n + AHEAD])
                _add(out, b, table, ids[n], out.dtype.type(1))
            many = out.dtype.type(max(bag_at[b + 1] - bag_at[b], 1))
            for d in range(out.shape[1]):
                out[b, d] /= many


@numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def _scatter_mean(table, bag_at, ids, grad, scale, threads):
    for thread in numba.prange(threads):
        for b in range(grad.shape[0]):
            for n in range(bag_at[b], bag_at[b + 1]):
                if n + AHEAD < ids.size and ids[n + AHEAD] % threads == thread:
                    prefetch_row(table, ids[n + AHEAD])
                if ids[n] % threads == thread:
                    _add(table, ids[n], grad, b, scale / table.dtype.type(bag_at[b + 1] - bag_at[b]))


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _add(table, row, values, n, scale):
    for d in range(values.shape[1]):
        table[row, d] += scale * values[n, d]
