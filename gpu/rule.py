"""The rule by which rows move, as the kernels take it: see gpu/visit.cuh, and `Learned` and `Rule` in the contract."""

import math
from typing import Any


def plain(learned: Any, rule: Any) -> bool:
    """Whether rows move by plain SGD: no squares, no decay, no clip."""
    return learned.squares is None and rule.decay is None and rule.clip is None


def scalars(rule: Any) -> tuple[float, float, float]:
    """rate, keep and clip of `Rule` in gpu/visit.cuh."""
    return rule.rate, keep(rule), math.inf if rule.clip is None else rule.clip


def keep(rule: Any) -> float:
    """What a visited row is multiplied with."""
    return 1.0 if rule.decay is None else 1 - rule.rate * rule.decay


def wide(learned: Any) -> bool:
    """Whether every number of a row has a square of its own."""
    return learned.squares is not None and learned.squares.ndim == 2


def cut(learned: Any, first: int, last: int) -> Any:
    """The rows first:last of what learns."""
    return learned._replace(**{name: part[first:last] for name, part in learned._asdict().items() if part is not None})
