from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.histories import Histories, HistoryFeed, Order, lasts


def table(lists) -> Histories:
    item = np.array(list(chain(*lists)), np.int32)
    at = np.concatenate([[0], np.cumsum([len(items) for items in lists])]).astype(np.int64)
    return Histories(item, at, [str(user) for user in range(len(lists))], list("uvwxyz"))


def bags(ids, bag_at):
    return [tuple(ids[a:b].tolist()) for a, b in pairwise(bag_at)]


def examples(feed):
    return [pair for b in feed for pair in zip(bags(b.ids, b.bag_at), b.target.tolist(), strict=True)]


histories = st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=6)
learnable = histories.filter(lambda lists: max(map(len, lists)) > 1)


@given(learnable, st.integers(1, 5), st.integers(1, 9))
def test_examples_are_those_of_brute_force(lists, length, batch):
    expected = [(tuple(items[:at][-length:]), items[at]) for items in lists for at in range(1, len(items))]
    feed = HistoryFeed(table(lists), length=length, batch=batch, seed=None)
    assert examples(feed) == expected
    assert sorted(examples(HistoryFeed(table(lists), length=length, batch=batch))) == sorted(expected)
    np.testing.assert_array_equal(feed.counts, [sum(items.count(item) for items in lists) for item in range(6)])


@given(histories, st.integers(1, 5))
def test_last_items_are_those_of_brute_force(lists, length):
    users = np.arange(len(lists), dtype=np.int32)[::-1]
    assert bags(*lasts(table(lists), users, length)) == [tuple(lists[user][-length:]) for user in users]


LISTS = [[0, 1, 2, 3], [5], [], [4, 4, 1, 0, 2] * 5]


def test_weights_are_those_of_the_targets():
    lists = table(LISTS)
    weighted = lists._replace(weight=np.arange(len(lists.item), dtype=np.float32))
    feed = HistoryFeed(weighted, length=3, batch=5, seed=None)
    targets = [at for first, last in pairwise(lists.at) for at in range(first + 1, last)]
    assert np.concatenate([batch.weight for batch in feed]).tolist() == targets
    assert feed.describe() != HistoryFeed(lists, length=3, batch=5, seed=None).describe()


SPOILED = {
    r"histories.item\[1\]: found 6, expected 0 to 5": {"item": [0, 6, 1]},
    r"histories.item\[1\]: found 4294967296, expected 0 to 5": {"item": [0, 2**32, 1]},
    r"histories.item: found float64 \(3,\), expected whole numbers": {"item": [0.0, 1.0, 2.0]},
    r"histories.at\[1\]: found 2000000000, expected 3": {"at": [0, 2_000_000_000]},
    r"histories: found item \(3,\) and at \(3,\), expected .* at \(2,\)": {"at": [0, 1, 3]},
}


@pytest.mark.parametrize("message", SPOILED)
def test_histories_that_point_elsewhere(message):
    changes = {name: np.array(values) for name, values in SPOILED[message].items()}
    with pytest.raises(IndexError if "expected 0 to" in message else ValueError, match=message):
        HistoryFeed(table([[0, 1, 2]])._replace(**changes))


USERS = np.array([3, 0, 2, 1], np.int32)


def test_a_bag_has_the_last_items_and_a_sequence_begins_at_its_first_place():
    bag, sequence = (Order(name, 3).question(table(LISTS), USERS) for name in ("bag", "sequence"))
    assert bag["ids"].tolist() == [1, 0, 2, 1, 2, 3, 5] and bag["bag_at"].tolist() == [0, 3, 6, 6, 7]
    assert sequence["ids"].reshape(4, 3).tolist() == [[1, 0, 2], [1, 2, 3], [6, 6, 6], [5, 6, 6]]
    assert sequence["rows"].tolist() == [2, 5, 6, 9]
    with pytest.raises(ValueError, match="order: found 'queue', expected one of bag, sequence"):
        Order("queue").checked()
