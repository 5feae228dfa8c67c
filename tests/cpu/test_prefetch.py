"""A hint to the memory: it changes nothing, whatever the width of a row."""

import numba
import numpy as np
import pytest

from cpu.runtime.memory import prefetch_row


@numba.njit
def summed(table, rows):
    """The sum of some rows, each asked for before it is read."""
    total = np.zeros(table.shape[1], table.dtype)
    for i in range(rows.size):
        prefetch_row(table, rows[min(i + 1, rows.size - 1)])
        total += table[rows[i]]
    return total


@pytest.mark.parametrize(("width", "dtype"), [(1, np.float64), (16, np.float32), (17, np.float32), (100, np.float64)])
def test_it_changes_nothing(width, dtype):
    table = np.random.default_rng(0).integers(0, 9, (7, width)).astype(dtype)
    before, rows = table.copy(), np.array([6, 0, 3, 3], np.int32)
    assert np.array_equal(summed(table, rows), table[rows].sum(axis=0))
    assert np.array_equal(table, before)


@numba.njit
def asked(numbers, nothing):
    prefetch_row(numbers, 2)
    prefetch_row(nothing, 2)
    return True


def test_it_takes_one_number_a_row_and_no_table():
    numbers = np.arange(4.0)
    assert asked(numbers, None) and numbers.tolist() == [0, 1, 2, 3]
