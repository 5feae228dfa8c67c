"""Of histories of brute force: what is held out, what is left, and that nothing of the future is learned from."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.histories import Histories
from hybrid.feeds.splits import split, split_by_time

lists_of_times = st.lists(st.lists(st.integers(0, 30), max_size=9).map(sorted), min_size=1, max_size=6)
shares = st.sampled_from([0.0, 0.1, 0.25, 0.4])


def table(times) -> Histories:
    """Each item is a number of its own, so that it can be told where it went; its weight is its number too."""
    at = np.concatenate([[0], np.cumsum([len(part) for part in times])]).astype(np.int64)
    item = np.arange(at[-1], dtype=np.int32)
    users, when = [f"u{n}" for n in range(len(times))], np.array(list(chain(*times)), np.int64)
    return Histories(item, at, users, list(map(str, item)), item.astype(np.float32), when)


def by_user(histories):
    return [histories.item[a:b].tolist() for a, b in pairwise(histories.at)]


def check(whole, parts):
    """Every item is in one part; those who have nothing before an item are not measured by it."""
    user = np.repeat(np.arange(len(whole.users)), np.diff(whole.at))
    for held, before in ((parts.valid, parts.train), (parts.test, parts.seen)):
        assert (user[held.item] == held.user).all() and (np.diff(held.user) >= 0).all()
        assert (np.diff(before.at)[held.user] > 0).all()
    assert set(parts.train.item) <= set(parts.seen.item)
    assert not set(parts.valid.item) & set(parts.train.item) and not set(parts.test.item) & set(parts.seen.item)
    for part in (parts.train, parts.seen):
        np.testing.assert_array_equal(part.weight, part.item)
        np.testing.assert_array_equal(part.time, whole.time[part.item])


@given(lists_of_times)
def test_the_last_items(times):
    whole = table(times)
    parts = split(whole)
    check(whole, parts)
    for user, items in enumerate(by_user(whole)):
        held = len(items) >= 3
        assert by_user(parts.train)[user] == (items[:-2] if held else items)
        assert parts.test.item[parts.test.user == user].tolist() == (items[-1:] if held else [])
        assert parts.valid.item[parts.valid.user == user].tolist() == (items[-2:-1] if held else [])


@given(lists_of_times.filter(lambda times: len(set(chain(*times))) > 3), shares.filter(bool), shares)
def test_what_came_last(times, test, valid):
    whole = table(times)
    ordered = np.sort(whole.time)
    try:
        parts = split_by_time(whole, test=test, valid=valid)
    except ValueError:  # so many at one time that nothing is left before it
        n = len(ordered)
        assert ordered[min(n - round(n * test), n - 1)] == ordered[0]
        return
    check(whole, parts)
    left_out = np.setdiff1d(whole.item, parts.seen.item)
    assert whole.time[left_out].min() > parts.seen.time.max()
    validating = np.setdiff1d(parts.seen.item, parts.train.item)
    if len(validating) and len(parts.train.item):
        assert whole.time[validating].min() > parts.train.time.max()
    assert len(left_out) >= round(len(whole.item) * test)  # more where times are equal


@pytest.mark.parametrize(("share", "tests"), [(0, 0), (0.01, 1), (0.5, 2)])
def test_a_share_of_what_came_last_tests_one_item_at_least(share, tests):
    parts = split_by_time(table([[0, 2], [1, 3]]), test=share, valid=0)
    assert sorted(parts.seen.time) == list(range(4 - tests))


def test_refusals():
    whole = table([[1, 2, 3]])
    for test, valid in ((1, 0), (0.5, 0.5), (-0.1, 0)):
        with pytest.raises(ValueError, match=f"split: found test {test} and valid {valid}, expected shares"):
            split_by_time(whole, test=test, valid=valid)
    with pytest.raises(ValueError, match="histories: found no times"):
        split_by_time(whole._replace(time=None))
