"""Checkpoints of parts in shards, which are those of one process: rank 0 writes what all of them have, piece by piece."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..ranks.group import Group
from ..storage import checkpoint, safetensors
from ..storage.safetensors import Pieced, Runs

PIECE = 2**22  # bytes that rank 0 has of an array at a time


class Spread(NamedTuple):
    """An array of rows that are shared out to ranks.

    own      the rows of this rank, (n, ...)
    numbers  (n,) which they are, rising
    rows     how many there are in all
    rank_of  rank_of(first, last) is the rank of each row from `first` to before `last`
    """

    own: np.ndarray
    numbers: np.ndarray
    rows: int
    rank_of: Callable[[int, int], np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole array."""
        return (self.rows, *self.own.shape[1:])


Arrays = Mapping[str, np.ndarray | Spread]


def save(group: Group, folder: str | Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """As storage.checkpoint.save, by all ranks; other arrays than spread ones are those of rank 0.

    Raises what it raises, on all ranks.
    """
    with group.together():
        if group.rank:
            _serve(group, [array for array in arrays.values() if isinstance(array, Spread)])
            return
        try:
            checkpoint.save(folder, _written(group, arrays), facts)
        finally:
            group.share(np.array([-1, 0, 0]))


def load(group: Group, path: str | Path, arrays: Arrays) -> dict[str, Any]:
    """Fill arrays from a checkpoint, however many ranks wrote it, and return its facts; rank 0 verifies it for all.

    Raises as storage.checkpoint.load_into does.
    """
    group.once(lambda: checkpoint.verify(path, safetensors.forms(_written(group, arrays))))
    checkpoint.load_runs(path, {name: _runs(array) for name, array in arrays.items()})
    return checkpoint.read_facts(path)


def _written(group: Group, arrays: Arrays) -> dict[str, np.ndarray | Pieced]:
    """The arrays as rank 0 writes them."""
    numbers = itertools.count()
    return {
        name: _pieced(group, next(numbers), array) if isinstance(array, Spread) else array
        for name, array in arrays.items()
    }


def _pieced(group: Group, which: int, array: Spread) -> Pieced:
    """The array whose pieces the others send when they are told which they are, see `_serve`."""
    step = max(1, PIECE // (array.own.itemsize * math.prod(array.shape[1:])))

    def pieces() -> Iterator[np.ndarray]:
        for first in range(0, array.rows, step):
            last = min(first + step, array.rows)
            group.share(np.array([which, first, last]))
            yield _gathered(group, array, first, last)

    return Pieced(array.own.dtype, array.shape, pieces)


def _serve(group: Group, spread: list[Spread]) -> None:
    """Send rank 0 what it asks for, until it has all, or has failed."""
    asked = np.zeros(3, np.int64)
    group.share(asked)
    while (which := int(asked[0])) >= 0:
        _gathered(group, spread[which], int(asked[1]), int(asked[2]))
        group.share(asked)


def _gathered(group: Group, array: Spread, first: int, last: int) -> np.ndarray:
    """These rows of all ranks, on rank 0; on another one its own."""
    own = array.own[slice(*np.searchsorted(array.numbers, (first, last)))]
    if group.rank:
        group.exchange({0: own}, {}).run()
        return own
    out, owner = np.empty((last - first, *own.shape[1:]), own.dtype), array.rank_of(first, last)
    parts = {rank: np.empty((np.count_nonzero(owner == rank), *own.shape[1:]), own.dtype) for rank in group.others}
    group.exchange({}, parts).run()
    for rank, part in (parts | {0: own}).items():
        out[owner == rank] = part
    return out


def _runs(array: "np.ndarray | Spread") -> Runs:
    """What this rank reads of an array."""
    if isinstance(array, np.ndarray):
        return Runs.whole(array)
    width = array.own.size // max(1, len(array.own))
    places = array.numbers.astype(np.int64), np.arange(len(array.own)), np.ones(len(array.own), np.int64)
    return Runs(array.own.reshape(-1), *(width * place for place in places))
