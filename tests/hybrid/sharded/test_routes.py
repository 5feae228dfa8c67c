"""Worked by hand: 3 ranks, rank r has the rows r, r + 3, ...; ids 7 1 7 | 4 | 1 0 5 of the examples of ranks 0, 1, 2."""

import numpy as np
import pytest

from hybrid.sharded.routes import Shard, even, giving_back, loan, visits

IDS, ID_AT = np.array([7, 1, 7, 4, 1, 0, 5], np.int32), np.array([0, 3, 4, 7])


def listed(arrays):
    return [array.tolist() for array in arrays]


def test_rows_are_lent_once_to_each_rank():
    lent = loan(Shard(1, 3), IDS, ID_AT)  # it has 1, 4, 7 as its rows 0, 1, 2
    assert listed(lent.give) == [[0, 2], [1], [0]]
    assert (lent.take.tolist(), lent.place.tolist()) == ([0, 1, 0], [0])
    lent = loan(Shard(2, 3), IDS, ID_AT)  # it reads 0 of rank 0, 1 of rank 1 and its own 5
    assert listed(lent.give) == [[], [], [1]]
    assert (lent.take.tolist(), lent.place.tolist()) == ([1, 1, 1], [1, 0, 2])


def test_gradients_of_ids_come_back_in_the_order_of_the_batch():
    back = giving_back(Shard(1, 3), IDS, ID_AT, np.arange(7), ID_AT)
    assert listed(back.give) == [[], [0], []]
    assert back.take.tolist() == [3, 1, 1]
    assert listed((back.visit, back.row, back.of)) == [[0, 1, 2, 3, 4], [2, 0, 2, 1, 0], [0, 1, 2, 3, 4]]


def test_the_gradient_of_a_bag_comes_once():
    bag, bag_at = np.array([0, 0, 0, 1, 3, 3, 3]), np.array([0, 1, 2, 4])  # bag 2, of rank 2, is empty
    back = giving_back(Shard(1, 3), IDS, ID_AT, bag, bag_at)
    assert listed(back.give) == [[], [0], []]
    assert (back.take.tolist(), back.of.tolist()) == ([1, 1, 1], [0, 0, 0, 1, 2])
    back = giving_back(Shard(2, 3), IDS, ID_AT, bag, bag_at)
    assert listed(back.give) == [[1], [1], [1]]
    assert (back.take.tolist(), back.visit.tolist(), back.row.tolist()) == ([0, 0, 1], [6], [1])


@pytest.mark.parametrize(("rank", "count"), [(0, 3), (1, 2), (2, 2)])
def test_ranks_share_rows_evenly(rank, count):
    assert Shard(rank, 3).count(7) == count


def test_examples_go_to_all_ranks_that_they_meet():
    meets = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0]], np.bool_)
    met = visits(Shard(1, 3), meets, np.array([0, 1, 4, 5]))
    assert listed(met.give) == [[2], [0, 2], [0, 1, 2]]
    assert (met.take.tolist(), met.come.tolist()) == ([0, 2, 1], [1, 3, 4])
    assert even(5, 3).tolist() == [0, 1, 3, 5]
