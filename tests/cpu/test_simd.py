"""Vectors of the kernels: what is masked is neither read nor written, and sums have one order."""

import numba
import numpy as np
import pytest

from cpu.vectors import simd
from cpu.vectors.simd import LANES

BITS = 1024


@numba.njit
def copied(out, source, count):
    """A loop over an array, as kernels write it."""
    for i in range(0, count, simd.lanes(source, BITS)):
        simd.store(out, i, count - i, simd.load(source, i, count - i, BITS))


@numba.njit
def four_rows(rows):
    return (
        simd.load_row(rows, 0, 0, LANES),
        simd.load_row(rows, 1, 0, LANES),
        simd.load_row(rows, 2, 0, LANES),
        simd.load_row(rows, 3, 0, LANES),
    )


@numba.njit
def summed(out, index, count, rows):
    """Four sums, added to the first `count` numbers from an index on."""
    a, b, c, d = four_rows(rows)
    simd.add_sums(out, index, count, a, b, c, d)


@numba.njit
def four_totals(out, rows):
    a, b, c, d = four_rows(rows)
    sums = simd.totals(a, b, c, d)
    simd.store_totals(out, 1, sums, sums, sums, sums)


def test_a_loop_takes_what_is_there_and_no_more():
    for count in (0, 1, 15, 16, 17, 31, 32, 33, 49, 64, 100):
        source, out = np.arange(1.0, 101).astype(np.float32), np.full(132, -1, np.float32)
        copied(out, source, count)
        assert np.array_equal(out[:count], source[:count]) and np.all(out[count:] == -1)


def halved(row):
    """The sum of a row in the order of the contract: the upper half is added to the lower."""
    while len(row) > 1:
        row = row[: len(row) // 2] + row[len(row) // 2 :]
    return row[0]


def test_sums_have_one_order():
    rows = np.random.default_rng(0).normal(size=(4, LANES)).astype(np.float32)
    expected = np.array([halved(row) for row in rows])
    found = np.full(20, -1, np.float32)
    four_totals(found, rows)
    assert np.array_equal(found[1:17], np.tile(expected, 4)) and found[0] == -1 and np.all(found[17:] == -1)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_sums_are_added_to_as_many_numbers_as_there_are(count):
    rows = np.random.default_rng(1).normal(size=(4, LANES)).astype(np.float32)
    found = np.arange(8).astype(np.float32)
    summed(found, 2, count, rows)
    expected = np.arange(8).astype(np.float32)
    expected[2 : 2 + min(count, 4)] += np.array([halved(row) for row in rows])[:count]
    assert np.array_equal(found, expected)
