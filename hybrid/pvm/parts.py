"""The arrays of a model whose units ranks share: piece by piece into one checkpoint, and each rank's own out of it.

In a checkpoint an array has the units in the order of their numbers, whoever has them; so a model goes on on any number of
ranks. Rank 0 writes. It asks all ranks for one piece after another, so it needs room for a piece more than it has.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..storage import checkpoint, safetensors
from ..storage.safetensors import Pieced, Runs
from .layout import TapeLayout, runs, weights_at
from .shared import SharedPipeline

PIECE = 1 << 22  # numbers
STOP = -1  # no piece


class Share(NamedTuple):
    """What one rank has of a model.

    whole, own  layouts of all units and of the rank's own
    units       (u,) which these are
    owner       (U,) the rank of each unit
    """

    whole: TapeLayout
    own: TapeLayout
    units: np.ndarray
    owner: np.ndarray


class Parts(NamedTuple):
    """An array of all units, flat, as parts in its order.

    shape      of the whole
    at, sizes  (P,) where the parts begin, and how many numbers they have
    owner      (P,) the rank that has each; rank 0 what all have
    own_at     (P,) where this rank has those that are its own
    """

    shape: tuple[int, ...]
    at: np.ndarray
    sizes: np.ndarray
    owner: np.ndarray
    own_at: np.ndarray


class Kept:
    """The arrays of this rank, and where they belong in those of all units."""

    def __init__(self, pipeline: SharedPipeline):
        self._group, self._arrays, self._put = pipeline.group, pipeline.fetch(), pipeline.put
        owner = np.zeros(len(pipeline.wiring.hidden), np.int64)
        for rank, units in enumerate(pipeline.shares.units):
            owner[units] = rank
        share = Share(pipeline.whole, pipeline.layout, pipeline.units, owner)
        self._parts = {name: _parts(share, name, array) for name, array in self._arrays.items()}
        self._written = {
            name: Pieced(array.dtype, self._parts[name].shape, functools.partial(self._whole, name))
            for name, array in self._arrays.items()
        }
        self._forms = safetensors.forms(self._written)
        self._pieces = [
            (name, first, min(first + PIECE, int(np.prod(parts.shape))))
            for name, parts in self._parts.items()
            for first in range(0, int(np.prod(parts.shape)), PIECE)
        ]

    def save(self, folder: str | Path, facts: dict[str, Any]) -> None:
        """Write one checkpoint, as `checkpoint.save` does; what rank 0 raises, all raise."""
        with self._group.together():
            if self._group.rank:
                while (asked := self._asked()) != STOP:
                    self._collect(asked)
                return
            try:
                checkpoint.save(folder, self._written, facts)
            finally:
                self._asked(STOP)

    def load(self, folder: str | Path) -> None:
        """Read the arrays of this rank out of a checkpoint, which rank 0 verifies for all. Raises as `checkpoint.load_into`."""
        with self._group.together():
            if self._group.rank == 0:
                checkpoint.verify(folder, self._forms)
        with self._group.together():
            checkpoint.load_runs(folder, {name: self._runs(name) for name in self._arrays})
        self._put(self._arrays)

    def _runs(self, name: str) -> Runs:
        """What this rank reads of an array: its own parts; or all of one that it has whole."""
        array, parts = self._arrays[name], self._parts[name]
        own = np.flatnonzero((array.shape == parts.shape) | (parts.owner == self._group.rank))
        return Runs(array.reshape(-1), parts.at[own], parts.own_at[own], parts.sizes[own])

    def _whole(self, name: str) -> Iterator[np.ndarray]:
        """An array of all units, piece by piece, on rank 0; the others are in `_collect` meanwhile."""
        for number, (of, *_) in enumerate(self._pieces):
            if of == name:
                self._asked(number)
                yield self._collect(number)

    def _asked(self, number: int = STOP) -> int:
        """The piece that rank 0 asks for."""
        said = np.array([number])
        self._group.share(said)
        return int(said[0])

    def _collect(self, number: int) -> np.ndarray:
        """On rank 0 a piece, on others nothing: what they have of it has gone to rank 0."""
        name, first, last = self._pieces[number]
        parts, group = self._parts[name], self._group
        begin, end = np.maximum(parts.at, first), np.minimum(parts.at + parts.sizes, last)
        sizes = np.maximum(end - begin, 0)
        dtype = self._arrays[name].dtype
        mine = parts.owner == group.rank
        own: np.ndarray = self._arrays[name].reshape(-1)[runs((parts.own_at + begin - parts.at)[mine], sizes[mine])]
        if group.rank:
            group.exchange({0: own}, {}).run()
            return own[:0]
        whole: np.ndarray = np.empty(last - first, dtype)
        came = {rank: np.empty(int(sizes[parts.owner == rank].sum()), dtype) for rank in group.others}
        group.exchange({}, came).run()
        for rank, numbers in (came | {0: own}).items():
            theirs = parts.owner == rank
            whole[runs(begin[theirs] - first, sizes[theirs])] = numbers
        return whole


def _parts(share: Share, name: str, array: np.ndarray) -> Parts:
    """Where the parts of an array of this name are; array: anybody's, for its rows."""
    whole, own = share.whole, share.own
    if name in ("weights", "velocity"):
        return _by_unit(share, (), weights_at(whole), weights_at(own))
    if "tape" in name:
        return _by_unit(share, array.shape[:1], whole.tape_at, own.tape_at)
    if "signals" in name or (name == "integral" and array.size):
        return _by_unit(share, array.shape[:1], whole.signal_at, own.signal_at)
    if name in ("world_0", "world_1", "low", "high"):
        at = np.concatenate([[0], whole.published_at, [whole.world]])
        return _rows(array.shape[:1], at, np.concatenate([[0], share.owner]), at[:-1], int(at[-1]))
    at = np.array([0, array.size])  # what all ranks have
    return _rows((), at, np.zeros(1, np.int64), at[:-1], array.size)._replace(shape=array.shape)


def _by_unit(share: Share, rows: tuple[int, ...], at: np.ndarray, own: np.ndarray) -> Parts:
    """Of an array whose rows have a part for each unit; (U + 1,) and (u + 1,) where these begin in rows of all units, and of
    own ones.
    """
    own_at = np.zeros(len(at) - 1, np.int64)
    own_at[share.units] = own[:-1]
    return _rows(rows, at, share.owner, own_at, int(own[-1]))


def _rows(rows: tuple[int, ...], at: np.ndarray, owner: np.ndarray, own_at: np.ndarray, width: int) -> Parts:
    """The same parts in each of some rows; (): in a flat array. width: of an own row."""
    many = int(np.prod(rows, dtype=np.int64))
    row = np.arange(many)[:, None]
    return Parts(
        shape=(*rows, int(at[-1])),
        at=(row * at[-1] + at[:-1]).ravel(),
        sizes=np.tile(np.diff(at), many),
        owner=np.tile(owner, many),
        own_at=(row * width + own_at).ravel(),
    )
