"""The next item of Amazon's Beauty, 40,226 users and 54,542 items, as `user item` a line, in the order of time."""

from typing import Any

from bench.contender import Problem
from bench.problems import _items, there


def make(arguments: Any) -> Problem | None:
    """Weighted bags and sequences."""
    path = there("beauty.txt")
    return (
        None
        if path is None
        else _items.problem(arguments, "Beauty", path, ["1", "2"], (5, 10, 20), ("decay", "sequence"))
    )
