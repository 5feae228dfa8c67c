"""The forms of inputs and targets, one by one; batches of them are in test_arrays.py."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas", reason="pandas is not installed: make test-all")

polars = pytest.importorskip("polars", reason="polars is not installed: make test-all")

from hybrid.feeds.arrays import inputs


def test_a_list_of_lists_is_bags_and_an_array_of_two_axes_is_contexts():
    bags, contexts = inputs([[1, 2], [3, 4]]), inputs(np.array([[1, 2], [3, 4]]))
    assert bags.ids is None and bags.ragged.at.tolist() == [0, 2, 4]
    assert contexts.ragged is None and contexts.ids.shape == (2, 2)
    assert len(bags) == len(contexts) == 2 and bags.rows == contexts.rows == 5


def test_whole_numbers_are_ids_and_others_are_numbers():
    assert inputs(np.array([[1, 2]])).x is None
    numbers = inputs(np.array([[1.0, 2.0]], np.float16))
    assert numbers.x.shape == (1, 2) and numbers.rows == 0
