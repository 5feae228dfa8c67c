"""The next item of MovieLens-100k: 943 users, 1,682 items; validation and test are small, so seeds differ much."""

from typing import Any

from bench.contender import Problem
from bench.problems import _items, there


def make(arguments: Any) -> Problem | None:
    """Every order of a history."""
    path = there("ml-100k/u.data")
    return None if path is None else _items.problem(arguments, "ml-100k", path, None, (5, 10, 20), _items.ORDERS)
