"""Which items of ratings a recommender is chosen and tested by: the options, and the histories that they make."""

import argparse
import dataclasses
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..feeds.interactions import Histories
from ..feeds.splits import LEAST, Split, split, split_by_ratio, split_by_time, split_drawn
from ..settings import option

LAST, RATIO, DRAWN, TIME = WAYS = ("last", "ratio", "drawn", "time")


def share(text: str) -> float:
    """A share of at least 0 and less than 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a share of at least 0 and less than 1, such as 0.2")
    return value


@dataclasses.dataclass(frozen=True)
class SplitOptions:
    """Of a model that learns from ratings."""

    split_by: str = option(
        LAST,
        "what tests: the last item of each user, a ratio of each user's, items drawn from all, or what came last in time",
        group="data",
        choices=WAYS,
    )
    test_share: float = option(
        0.2, "share of the items that test, of --split-by ratio, drawn, time", group="data", type=share
    )
    valid_share: float = option(0.1, "share of the items that validate, likewise", group="data", type=share)


def check_said(chosen: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """ValueError for options of another way to split than the one chosen."""
    for name in ("test_share", "valid_share"):
        if chosen["split_by"] == LAST and said.get(name) is not None:
            wanted = "expected --split-by ratio, drawn or time"
            raise ValueError(f"--{name.replace('_', '-')}: not used by --split-by last; {wanted}")


def parts(every: Histories, options: Mapping[str, Any]) -> Split:
    """The histories, split as the options say."""
    way = options.get("split_by") or LAST
    if way == LAST:
        return split(every)
    shares = {"test": options["test_share"], "valid": options["valid_share"]}
    if way == RATIO:
        return split_by_ratio(every, **shares)
    if way == DRAWN:
        return split_drawn(every, **shares, seed=options["seed"])
    return split_by_time(every, **shares)


def protocol(options: Mapping[str, Any]) -> str:
    """How is measured, in words."""
    held = {
        LAST: "the last item of every user with three tests, the one before it validates",
        RATIO: "the last items of every user with three test, those before them validate",
        DRAWN: "items drawn from all test and validate",
        TIME: "what came last of all tests, what came before it validates",
    }[options.get("split_by") or LAST]
    return (
        f"{held}; all items are ranked but those that the user had; items of equal times are in the order of the file"
    )


def digest(every: Histories, options: Mapping[str, Any]) -> str:
    """Digest of all that the split depends on."""
    if options.get("split_by") != TIME or every.time is None:
        return every.sha256
    return hashlib.sha256(every.sha256.encode() + every.time.tobytes()).hexdigest()


def check(path: str, found: Split, measured: Mapping[str, int]) -> None:
    """ValueError for ratings that leave nothing to validate or to test with.

    measured  how many held-out items are new to their users, by what they do: "validates", "tests"
    """
    users = len(found.train.users)
    if not len(found.test.user) and not any(np.diff(found.seen.at) >= LEAST):
        raise ValueError(
            f"{path}: none of {users} users has 3 items; expected some: the last tests, the one before validates"
        )
    for does, number in measured.items():
        if not len((found.valid if does == "validates" else found.test).user):
            raise ValueError(f"{path}: no item {does}; expected some: give --valid-share and --test-share more")
        if not number:
            raise ValueError(
                f"{path}: every item that {does} is one that its user had before; expected new ones, which can be ranked"
            )
