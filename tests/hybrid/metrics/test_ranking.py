from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid import metrics
from hybrid.feeds.ratings import HeldOut, Histories


def table(lists, items=5) -> Histories:
    at = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Histories(
        np.array(list(chain(*lists)), np.int32), at, [f"u{user}" for user in range(len(lists))], list("abcde")[:items]
    )


def plain_rank(scores, seen, target):
    """Candidates are the target and what the user has not had; the target stands behind none that scores the same."""
    candidates = [item for item in range(len(scores)) if item not in seen or item == target]
    return 1 + sum(scores[item] > scores[target] for item in candidates)


@given(st.data(), st.integers(1, 4))
def test_ranks_are_those_of_brute_force(data, block):
    item = st.integers(0, 4)
    lists = data.draw(st.lists(st.lists(item, max_size=6), min_size=1, max_size=6))
    n = len(lists)
    target = np.array(data.draw(st.lists(item, min_size=n, max_size=n)), np.int32)
    scores = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=n, max_size=n)), np.float32
    )
    scores[scores == 0] = -np.inf
    before = scores.copy()
    users = np.arange(n, dtype=np.int32)[::-1]
    found = metrics.ranks(lambda asked: scores[asked], table(lists), HeldOut(users, target), block=block)
    assert found.tolist() == [plain_rank(scores[u], lists[u], t) for u, t in zip(users, target, strict=True)]
    np.testing.assert_array_equal(scores, before)


def test_measures_by_hand():
    found = metrics.measures(np.array([1, 3, 4, 100]), k=3)
    assert found == {"recall@3": 0.5, "ndcg@3": (1 + 1 / 2) / 4}
    assert metrics.measures(np.array([2]), k=1) == {"recall@1": 0, "ndcg@1": 0}


def test_several_items_of_a_user_are_ranked_in_one_list_and_met_once():
    seen = table([[0], [1], [2]])
    held = HeldOut(np.array([0, 0, 0, 2], np.int32), np.array([1, 3, 3, 4], np.int32))
    asked = []

    def scores(users):
        asked.append(users.tolist())
        return np.tile(np.array([9, 1, 2, 3, 4], np.float32), (len(users), 1))

    assert metrics.unseen(seen, held).item.tolist() == [1, 3, 4]
    found = metrics.figures(scores, seen, held, k=3)
    assert asked == [[0, 2]]
    assert (found["users"], found["repeats"]) == (2, 1)
    assert found["recall@3"] == (1 / 2 + 1) / 2  # user 0: items 1 and 3 rank 4 and 2; user 2: item 4 ranks 2


@pytest.mark.parametrize("shape", [(2, 4), (1, 5), (5,)])
def test_scores_of_a_wrong_shape(shape):
    held = HeldOut(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match=r"scores: found shape .*, expected \(2, 5\)"):
        metrics.ranks(lambda users: np.zeros(shape), table([[], []]), held)


def test_scores_that_are_nan():
    held = HeldOut(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="scores: NaN for user u1"):
        metrics.ranks(lambda users: np.where(users[:, None] == 1, np.nan, np.zeros((2, 5))), table([[], []]), held)


def test_what_a_user_had_before_is_counted_apart():
    seen = table([[0, 1], [2, 3, 2], [4], []])
    held = HeldOut(np.array([0, 1, 2, 3], np.int32), np.array([1, 4, 4, 0], np.int32))
    scores = np.array([[9, 0, 1, 1, 1], [5, 4, 9, 9, 3], [9, 9, 9, 9, 0], [1, 2, 2, 0, 0]], np.float32)
    assert metrics.unseen(seen, held).user.tolist() == [1, 3]
    found = metrics.figures(lambda users: scores[users], seen, held, k=2)
    assert (found["users"], found["repeats"], found["recall@2"]) == (2, 2, 0)
    assert metrics.figures(lambda users: scores[users], seen, held, k=3)["recall@3"] == 1
