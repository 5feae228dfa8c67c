"""Which items of ratings a recommender is chosen and tested by: the options, and the histories that they make."""

import argparse
import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..feeds.interactions import Histories
from ..feeds.splits import LEAST, Split, split, split_by_ratio, split_by_time, split_drawn
from ..settings import option

LAST, RATIO, DRAWN, TIME = WAYS = ("last", "ratio", "drawn", "time")


def way(text: str) -> str:
    """A way to split, as it is said; argparse's error for one that is none, and for shares that are not from 0 to below 1."""
    kind, *shares = text.split(":")
    if kind not in WAYS or len(shares) > (2 if kind != LAST else 0):
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected {', '.join(WAYS)}, or one of the latter three with shares"
        )
    try:
        fit = all(0 <= float(share) < 1 for share in shares)
    except ValueError:
        fit = False
    if not fit:
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected shares of at least 0 and less than 1, as in ratio:0.2:0.1"
        )
    return text


@dataclasses.dataclass(frozen=True)
class SplitOptions:
    """Of a model that learns from ratings."""

    split_by: str = option(
        LAST,
        "what tests: the last item of each user, a ratio of each user's, items drawn from all, or what came last in time; the"
        " latter three take the shares that test and validate: ratio:0.2:0.1",
        group="data",
        type=way,
        metavar="|".join(WAYS) + "[:TEST[:VALID]]",
    )


def _kind(options: Mapping[str, Any]) -> str:
    return str(options.get("split_by") or LAST).partition(":")[0]


def parts(every: Histories, options: Mapping[str, Any]) -> Split:
    """The histories, split as the options say; ValueError for a run that has the shares apart, as runs had once."""
    kind = _kind(options)
    if kind == LAST:
        return split(every)
    if "test_share" in options:
        raise ValueError("--test-share: found in the run, expected --split-by WAY:TEST:VALID; train it anew")
    said = options["split_by"].split(":")[1:]
    shares: dict[str, Any] = dict(zip(("test", "valid"), map(float, said), strict=False))
    if kind == RATIO:
        return split_by_ratio(every, **shares)
    if kind == DRAWN:
        return split_drawn(every, **shares, seed=options["seed"])
    return split_by_time(every, **shares)


def protocol(options: Mapping[str, Any]) -> str:
    """How is measured, in words."""
    held = {
        LAST: "the last item of every user with three tests, the one before it validates",
        RATIO: "the last items of every user with three test, those before them validate",
        DRAWN: "items drawn from all test and validate",
        TIME: "what came last of all tests, what came before it validates",
    }[_kind(options)]
    return (
        f"{held}; all items are ranked but those that the user had; items of equal times are in the order of the file"
    )


def digest(every: Histories, options: Mapping[str, Any]) -> str:
    """Digest of all that the split depends on."""
    if _kind(options) != TIME or every.time is None:
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
            raise ValueError(f"{path}: no item {does}; expected some: give --split-by larger shares")
        if not number:
            raise ValueError(
                f"{path}: every item that {does} is one that its user had before; expected new ones, which can be ranked"
            )
