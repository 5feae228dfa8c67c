import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid import BasketFeed

SETS = [[0, 1, 2], [3], [], [5, 1, 4, 0, 2], [2, 0]]
sets = st.lists(st.lists(st.integers(0, 6), unique=True, max_size=7), min_size=1, max_size=6)


def examples(feed):
    return [
        (set(batch.ids[batch.bag_at[b] : batch.bag_at[b + 1]].tolist()), int(batch.target[b]))
        for batch in feed
        for b in range(batch.examples)
    ]


@given(sets.filter(lambda found: max(map(len, found)) > 1), st.integers(1, 8), st.integers(1, 9))
def test_every_item_is_told_from_others_of_its_set(found, length, batch):
    feed = BasketFeed(found, items=7, length=length, batch=batch)
    met = examples(feed)
    assert sorted(target for _, target in met) == sorted(item for items in found if len(items) > 1 for item in items)
    for others, target in met:
        assert target not in others
        assert any({target} | others <= set(items) and len(others) == min(length, len(items) - 1) for items in found)
    if length >= 6:
        whole = [(set(items) - {item}, item) for items in found if len(items) > 1 for item in items]
        assert sorted(met, key=repr) == sorted(whole, key=repr)


def test_a_matrix_is_the_same_sets():
    dense = np.zeros((5, 7))
    for row, items in enumerate(SETS):
        dense[row, items] = 2.5
    feed = BasketFeed(sparse.coo_array(dense), batch=3)
    again = BasketFeed([sorted(items) for items in SETS], items=7, batch=3)
    assert feed.describe() == again.describe() and examples(feed) == examples(again)
    assert feed.classes == feed.rows == 7 and feed.counts.tolist() == [3, 2, 3, 1, 1, 1, 0]
    assert feed.describe() != BasketFeed(SETS, items=8, batch=3).describe()


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ([[1], [2], []], "baskets: none of 3 has 2 items"),
        ([[1, 2], [3, 0, 3]], r"baskets\[1\]: the item 3 occurs twice, expected once"),
        (np.arange(4), "baskets: found an array, expected a scipy sparse matrix or lists of items"),
    ],
)
def test_refusals(given_, message):
    with pytest.raises(ValueError, match=message):
        BasketFeed(given_)
    with pytest.raises(ValueError, match="length: found 0"):
        BasketFeed(SETS, length=0)
