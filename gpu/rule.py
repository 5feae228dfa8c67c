"""What learns, as launchers ask for it; see gpu/include/visit.cuh, and `Learned` in the contract."""

from typing import Any


def wide(learned: Any) -> bool:
    """Whether every number of a row has a square of its own."""
    return learned.squares is not None and learned.squares.ndim == 2


def cut(learned: Any, first: int, last: int) -> Any:
    """The rows first:last of what learns."""
    return learned._replace(**{name: part[first:last] for name, part in learned._asdict().items() if part is not None})
