"""Splits of histories into training, validation and test items.

A test item is also excluded from validation. A user without an earlier item is not evaluated.
"""

from typing import Any, NamedTuple

import numpy as np

from .histories import Histories

LEAST = 3  # items of a user before two are held out, for validation and test, so that one is left for training
TRAIN, VALID, TEST = 0, 1, 2


class HeldOut(NamedTuple):
    """n items held out of the histories; `split` holds out one per user, the others any number.

    user  (n,) int32, user numbers, ascending
    item  (n,) int32, an item of each
    """

    user: np.ndarray
    item: np.ndarray


class Split(NamedTuple):
    """The training histories, and the items held out of them: for validation (model selection), and for test.

    train  histories without the items held out
    valid  items held out for model selection
    seen   the histories before the test: train and valid
    test   items held out for test
    """

    train: Histories
    valid: HeldOut
    seen: Histories
    test: HeldOut


def split(whole: Histories) -> Split:
    """Holds out the last item of every user with at least 3 items for test, and the one before it for validation."""
    part = np.zeros(len(whole.item), np.int8)
    last = whole.at[1:][np.diff(whole.at) >= LEAST] - 1
    part[last - 1], part[last] = VALID, TEST
    return _parted(whole, part)


def split_by_time(whole: Histories, *, test: float = 0.2, valid: float = 0.1) -> Split:
    """Holds out the latest items over all users: test items follow validation items, which follow the rest.

    test, valid  fractions of all items; items of equal times stay together. One above 0 tests at least one item, 0 tests none

    Raises ValueError for histories without times or items, for fractions that sum to 1 or more, and for a test fraction that
    leaves no training data.
    """
    if not (0 <= test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise ValueError(f"split: found test {test} and valid {valid}, expected shares that sum to less than 1")
    if whole.time is None:
        raise ValueError("histories: found no times, expected some to split by; histories(ratings) has them")
    if not len(whole.item):
        raise ValueError(f"histories: found no item of {len(whole.users)} users, expected some to split by their times")
    times = np.sort(whole.time)
    begin = _test_begins(times, test)
    before, valids = int(np.searchsorted(times, begin)), round(len(times) * valid)
    middle = times[before - min(valids, before - 1)] if valids else begin
    return _parted(whole, np.where(whole.time >= begin, TEST, np.where(whole.time >= middle, VALID, TRAIN)))


def _test_begins(times: np.ndarray, test: float) -> Any:
    """Returns the time from which the test fraction starts, given the sorted times."""
    if not test:
        return np.inf
    begin = times[len(times) - max(round(len(times) * test), 1)]
    if begin == times[0]:
        raise ValueError(
            f"test: found {test:g}, which takes all from {begin} on, the first moment; expected less, or another split"
        )
    return begin


def _parted(whole: Histories, part: np.ndarray) -> Split:
    """Returns the split by the part of each item."""
    train, seen = whole.only(part == TRAIN), whole.only(part != TEST)
    return Split(train, _held_out(whole, part == VALID, train), seen, _held_out(whole, part == TEST, seen))


def _held_out(whole: Histories, chosen: np.ndarray, before: Histories) -> HeldOut:
    """Returns the chosen items of users with earlier items."""
    user = _users(whole)
    chosen = chosen & (np.diff(before.at) > 0)[user]
    return HeldOut(user[chosen], whole.item[chosen])


def _users(whole: Histories) -> np.ndarray:
    """Returns the user of every item."""
    return np.repeat(np.arange(len(whole.users), dtype=np.int32), np.diff(whole.at))
