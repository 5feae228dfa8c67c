"""An input table that gets more rows; all else is tested with the engine, rules in tests/hybrid/test_sparse.py."""

import numpy as np
import pytest

from hybrid.engine.embedding import Embedding


@pytest.mark.parametrize("at", [None, 3])
def test_new_rows_begin_as_those_of_a_larger_table_and_the_others_stay(at):
    made, large = (Embedding(rows, 3, seed=4, optimiser="adagrad") for rows in (5, 12))
    made._host.squares[:] = np.arange(15).reshape(5, 3) + 1
    before, squares = made.table.copy(), made._host.squares.copy()
    for count in (3, 4):
        made.add_rows(count, at)
    new = np.r_[5:12] if at is None else np.r_[7:10, 3:7]  # as they came, the later ones before the first
    stay = np.setdiff1d(np.arange(12), new)
    np.testing.assert_array_equal(made.table[new], large.table[5:])
    np.testing.assert_array_equal(made.table[stay], before)
    np.testing.assert_array_equal(made.parameters()["squares"][stay], squares)
    assert not made.parameters()["squares"][new].any() and made.rows == made.describe()["rows"] == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0,), "count: found 0"),
        ((2**31,), "count: found"),
        ((1, 6), "at: found 6, expected a whole number from 0 to 5"),
    ],
)
def test_rows_that_cannot_be_are_refused(given, message):
    made = Embedding(5, 3)
    with pytest.raises(ValueError, match=message):
        made.add_rows(*given)
    assert made.rows == len(made.table) == 5


@pytest.mark.parametrize("name", ["rate", "spread"])
def test_numbers_that_cannot_be_are_refused(name):
    for value in (-1e-9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{name}: found {value}"):
            Embedding(5, 3, **{name: value})
    assert Embedding(5, 3, **{name: 0}).table.any() == (name == "rate")
