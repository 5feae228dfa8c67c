"""What is read of histories, against lists of Python."""

import numpy as np
import pytest

from hybrid.feeds.histories import HistoryFeed
from hybrid.feeds.interactions import Histories, Order

LISTS = [[0, 1, 2, 3], [5], [], [4, 4, 1, 0, 2] * 2]
USERS = np.array([3, 0, 2, 1], np.int32)
TABLE = Histories(
    np.array([item for items in LISTS for item in items], np.int32),
    np.array([0, 4, 5, 5, 15]),
    ["a", "b", "c", "d"],
    list("uvwxyz"),
)


def test_a_decayed_bag_weighs_by_age():
    found = Order("decay", 3, 0.5).question(TABLE, USERS)
    assert found["ids"].tolist() == [1, 0, 2, 1, 2, 3, 5] and found["bag_at"].tolist() == [0, 3, 6, 6, 7]
    seventh = np.array([1, 2, 4, 1, 2, 4, 7], np.float32) / 7
    np.testing.assert_allclose(found["values"], seventh, rtol=1e-6)
    assert found["values"].dtype == np.float32


def test_concatenated_items_stand_at_the_end_of_their_places():
    found = Order("concatenated", 3).question(TABLE, USERS)
    assert found["ids"].reshape(4, 3).tolist() == [[1, 0, 2], [1, 2, 3], [6, 6, 6], [6, 6, 5]]


def test_a_sequence_begins_at_its_first_place_and_its_last_item_is_asked():
    found = Order("sequence", 3).question(TABLE, USERS)
    assert found["ids"].reshape(4, 3).tolist() == [[1, 0, 2], [1, 2, 3], [6, 6, 6], [5, 6, 6]]
    assert found["rows"].tolist() == [2, 5, 6, 9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "queue"}, "order: found 'queue', expected one of bag"),
        ({"order": "decay", "decay": 1.5}, "decay: found 1.5, expected a number from 0 to 1"),
        ({"order": "sequence"}, "SequenceFeed makes batches of sequences"),
    ],
)
def test_orders_that_there_are_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        HistoryFeed(TABLE, **arguments)
