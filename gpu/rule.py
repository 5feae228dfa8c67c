"""Views of `Learned` for launchers; see gpu/include/visit.cuh, and `Learned` in the contract."""

from typing import Any


def wide(learned: Any) -> bool:
    """True if every number of a row has its own squares."""
    return learned.squares is not None and learned.squares.ndim == 2


def cut(learned: Any, first: int, last: int) -> Any:
    """Returns rows first:last of `learned`."""
    return learned._replace(**{name: part[first:last] for name, part in learned._asdict().items() if part is not None})
