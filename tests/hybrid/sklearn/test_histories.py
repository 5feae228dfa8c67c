"""The forms of histories."""

import numpy as np
import pytest
from scipy import sparse

pd = pytest.importorskip("pandas", reason="pandas is not installed: make test-all")

from hybrid import ratings
from hybrid.sklearn import next_item


def test_a_matrix_without_its_zeros():
    matrix = sparse.csr_array(([1.0, 0.0, 2.0, 3.0], [4, 1, 0, 2], [0, 3, 3, 4]), (3, 5))
    found = next_item.of_matrix(matrix, np.arange(5))
    assert found.item.tolist() == [4, 0, 2] and found.at.tolist() == [0, 2, 2, 3]
    assert (found.item.dtype, found.at.dtype) == (np.int32, np.int64)


def test_lists_and_what_is_not_known():
    item, at = next_item.flat([["b", "x", "a"], [], ("a",)])
    found = next_item.of_lists(item, at, np.array(["a", "b"]))
    assert found.item.tolist() == [1, 0, 0] and found.at.tolist() == [0, 2, 2, 3]
    empty = next_item.of_lists(*next_item.flat([[], []]), np.array(["a", "b"]))
    assert empty.item.size == 0 and empty.at.tolist() == [0, 0, 0]


def test_histories_of_ratings_come_by_name():
    table = ratings.histories(ratings.from_columns(["u", "v", "u"], ["a", "b", "b"]))
    item, at = next_item.flat(table)
    assert item.tolist() == ["a", "b", "b"] and at.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("X", "matrix"),
    [
        (np.zeros((2, 3)), True),
        (np.zeros(3), True),  # which scikit-learn refuses, with the remedy
        (sparse.csr_array((2, 3)), True),
        (pd.DataFrame({"tea": [1], "pie": [0]}), True),
        ([[1, 2], [3, 4]], False),
        (np.array([[1], [2, 3]], object), False),
    ],
)
def test_lists_are_told_from_a_matrix(X, matrix):
    assert next_item.is_matrix(X) is matrix


def test_weights_stay_with_the_items_that_are_known():
    weight = np.array([0.5, 1, 2], np.float32)
    found = next_item.of_lists(np.array(["b", "x", "a"]), np.array([0, 2, 3]), np.array(["a", "b"]), weight)
    assert found.item.tolist() == [1, 0] and found.weight.tolist() == [0.5, 2]
