"""Which items of histories are learned from, which choose a model, and which test it.

What tests is held out of what validates too, and whoever has nothing left before an item is not measured by it.
"""

from typing import Any, NamedTuple

import numpy as np

from .histories import Histories

LEAST = 3  # items of a user of whom two are held out, to choose and to test: one is left to learn from
TRAIN, VALID, TEST = 0, 1, 2


class HeldOut(NamedTuple):
    """n items held out of the histories; `split` holds out one of a user, others any number.

    user  (n,) int32, numbers of users, in rising order
    item  (n,) int32, an item of each
    """

    user: np.ndarray
    item: np.ndarray


class Split(NamedTuple):
    """Histories to learn from, and the items held out of them: for validation, by which settings are chosen, and for test.

    train  histories without the items held out
    valid  items held out of them to choose by
    seen   what comes before the test: train and valid
    test   items held out to test with
    """

    train: Histories
    valid: HeldOut
    seen: Histories
    test: HeldOut


def split(whole: Histories) -> Split:
    """Hold out the last item of every user who has at least 3, for test, and the one before it, for validation."""
    part = np.zeros(len(whole.item), np.int8)
    last = whole.at[1:][np.diff(whole.at) >= LEAST] - 1
    part[last - 1], part[last] = VALID, TEST
    return _parted(whole, part)


def split_by_ratio(whole: Histories, *, test: float = 0.2, valid: float = 0.1) -> Split:
    """Hold out shares of the items of every user who has at least 3: the last ones for test, those before for validation.

    test, valid  shares; a share above 0 holds out at least one item of each, and one at least is left to learn from

    Raises ValueError for shares that sum to 1 or more.
    """
    _check_shares(test, valid)
    sizes = np.diff(whole.at)
    tests, valids = (
        np.maximum(np.rint(sizes * share).astype(np.int64), 1) if share else np.zeros(len(sizes), np.int64)
        for share in (test, valid)
    )
    tests = np.minimum(tests, np.maximum(sizes - valids - 1, 0))
    tests, valids = (np.where(sizes >= LEAST, number, 0) for number in (tests, valids))
    user = _users(whole)
    left = whole.at[1:][user] - np.arange(len(user))  # items of the same user from each on
    return _parted(whole, np.where(left <= tests[user], TEST, np.where(left <= (tests + valids)[user], VALID, TRAIN)))


def split_drawn(whole: Histories, *, test: float = 0.2, valid: float = 0.1, seed: int = 0) -> Split:
    """Hold out shares of all items, drawn from all histories together. Raises ValueError for shares that sum to 1 or more."""
    _check_shares(test, valid)
    drawn = np.random.default_rng(seed).permutation(len(whole.item))
    tests, valids = round(len(drawn) * test), round(len(drawn) * valid)
    part = np.zeros(len(drawn), np.int8)
    part[drawn[:tests]], part[drawn[tests : tests + valids]] = TEST, VALID
    return _parted(whole, part)


def split_by_time(whole: Histories, *, test: float = 0.2, valid: float = 0.1) -> Split:
    """Hold out what came last, of all users together: what tests comes after what validates, and that after the rest.

    test, valid  shares of all items; items of equal times stay together. A share above 0 tests one item at least, 0 none

    Raises ValueError for histories without times or items, for shares that sum to 1 or more, and for a share of the test that
    leaves nothing to learn from.
    """
    _check_shares(test, valid)
    if whole.time is None:
        raise ValueError(
            "histories: found no times, expected some to split by; histories(ratings) keeps those of ratings"
        )
    if not len(whole.item):
        raise ValueError(f"histories: found no item of {len(whole.users)} users, expected some to split by their times")
    times = np.sort(whole.time)
    begin = _test_begins(times, test)
    before, valids = int(np.searchsorted(times, begin)), round(len(times) * valid)
    middle = times[before - min(valids, before - 1)] if valids else begin
    return _parted(whole, np.where(whole.time >= begin, TEST, np.where(whole.time >= middle, VALID, TRAIN)))


def _test_begins(times: np.ndarray, test: float) -> Any:
    """The moment from which on a share of the items came, given their times in order."""
    if not test:
        return np.inf
    begin = times[len(times) - max(round(len(times) * test), 1)]
    if begin == times[0]:
        raise ValueError(
            f"test: found {test:g}, which takes all items from {begin} on, the first moment of all; expected a share that "
            "leaves some before it, or another way to split where times are equal"
        )
    return begin


def _parted(whole: Histories, part: np.ndarray) -> Split:
    """The split by the part that each item belongs to."""
    train, seen = whole.only(part == TRAIN), whole.only(part != TEST)
    return Split(train, _held_out(whole, part == VALID, train), seen, _held_out(whole, part == TEST, seen))


def _held_out(whole: Histories, chosen: np.ndarray, before: Histories) -> HeldOut:
    """The items chosen, of users who have something before."""
    user = _users(whole)
    chosen = chosen & (np.diff(before.at) > 0)[user]
    return HeldOut(user[chosen], whole.item[chosen])


def _users(whole: Histories) -> np.ndarray:
    """The user of every item."""
    return np.repeat(np.arange(len(whole.users), dtype=np.int32), np.diff(whole.at))


def _check_shares(test: float, valid: float) -> None:
    if not (0 <= test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise ValueError(f"split: found test {test} and valid {valid}, expected shares that sum to less than 1")
