"""What an option may be in a sweep: one of some values, or a number of a range."""

import math
import sys
from typing import Any, NamedTuple

import numpy as np

DIGITS = 3  # significant ones of numbers that are drawn, so that they can be read and typed


class Choice(NamedTuple):
    """One of some values."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """One of them, each as likely."""
        return self.values[int(rng.integers(len(self.values)))]

    @property
    def outermost(self) -> tuple[Any, ...]:
        """Values that have to be allowed, so that all are."""
        return self.values


class Range(NamedTuple):
    """A number from low to high, both included.

    log    evenly in the logarithm: as many between 1 and 10 as between 10 and 100
    whole  whole numbers alone
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def draw(self, rng: np.random.Generator) -> float:
        """A number of the range."""
        low, high = self.low, self.high + self.whole  # of a whole number all up to the next are its share
        share = rng.random()
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        value = math.floor(value) if self.whole else float(f"{value:.{DIGITS}g}")
        return min(max(value, self.low), self.high)

    @property
    def outermost(self) -> tuple[Any, ...]:
        """Values that have to be allowed, so that all are."""
        return (self.low, self.high)


Space = dict[str, Choice | Range]


def choice(found: list[Any]) -> Choice:
    """What a list in a file means; ValueError where it offers nothing to compare."""
    if not found or any(not plain(value) for value in found):
        raise ValueError(f"found {found}, expected a list of strings, numbers, true or false")
    if len({repr(value) for value in found}) < len(found):
        raise ValueError(f"found {found}, expected each value once")
    return Choice(tuple(found))


def numbers(found: dict[str, Any]) -> Range:
    """What a table in a file means: {from = 32, to = 256, log = true, whole = true}; ValueError for any other."""
    known = {"from", "to", "log", "whole"}
    if unknown := sorted(found.keys() - known):
        raise ValueError(f"found {unknown[0]!r}, expected from, to, log or whole")
    low: Any = found.get("from")
    high: Any = found.get("to")
    log, whole = found.get("log", False), found.get("whole", False)
    for name, value in (("log", log), ("whole", whole)):
        if not isinstance(value, bool):
            raise ValueError(f"{name}: found {value!r}, expected true or false")
    if not (_number(low, whole) and _number(high, whole) and low < high):
        kind = "whole numbers" if whole else "numbers"
        raise ValueError(f"found from {low!r} to {high!r}, expected two {kind} that rise")
    if log and low <= 0:
        raise ValueError(f"from: found {low!r}, expected a number above 0, since log = true")
    return Range(low, high, log, whole)


def plain(value: Any) -> bool:
    """Whether a value is one that an option can have."""
    return isinstance(value, str | bool) or _number(value)


def _number(value: Any, whole: bool = False) -> bool:
    kinds = int if whole else int | float
    return isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
