"""Copies in memory: each rank's part of a state is kept by another rank too, so that no loss of one takes it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .group import Group


class CopiesLost(RuntimeError):
    """A rank is lost, and so is the one that had the copy of its part."""


class Buddies:
    """What the ranks of a group can go back to. The rank half way round keeps a copy: on several hosts, it is on another one.

    tick  at which the copies were made; None: there are none yet
    """

    def __init__(self, group: Group):
        self.tick: int | None = None
        self._group = group
        self._members = group.members
        self._dtypes: list[np.dtype] = []
        self._own, self._kept = Packed.none(), Packed.none()  # kept: of the rank whose buddy this is

    def keep(self, tick: int, arrays: Sequence[np.ndarray]) -> None:
        """Copy the arrays of all ranks; what was kept before counts until all have the new copies.

        All ranks call it, each with as many arrays, of the same dtypes; how large they are is their own. At a loss it raises
        RankLost on all of them or on none.
        """
        own, kept = Packed.of(arrays), Packed.none()
        if (group := self._group).size > 1:
            buddy, ward = self._buddy(group.rank), self._ward(group.rank)
            sizes = np.empty_like(own.sizes)
            group.exchange({buddy: own.sizes}, {ward: sizes}).run()
            kept = Packed.room(sizes)
            group.exchange({buddy: own.data}, {ward: kept.data}).run()
            group.agree()
        self.tick, self._own, self._kept = tick, own, kept
        self._dtypes = [array.dtype for array in arrays]

    def parts(self, group: Group) -> Iterator[list[np.ndarray]]:
        """The arrays of each rank that there was, in turn and flat, on all ranks of the group of those that remain.

        Of what is on one rank alone, all ranks need the memory, one part at a time. Raises CopiesLost, on all, before the
        first part.
        """
        holders = [self._holder(rank, group) for rank in range(len(self._members))]
        for rank, holder in enumerate(holders):
            here = self._own if self._members[rank] == self._members[self._group.rank] else self._kept
            mine = holder == group.rank
            sizes = here.sizes.copy() if mine else np.empty_like(self._own.sizes)
            group.share(sizes, holder)
            part = here if mine else Packed.room(sizes)
            group.share(part.data, holder)
            yield part.arrays(self._dtypes)

    def _buddy(self, rank: int) -> int:
        size = len(self._members)
        return (rank + size // 2) % size

    def _ward(self, rank: int) -> int:
        size = len(self._members)
        return (rank - size // 2) % size

    def _holder(self, rank: int, group: Group) -> int:
        """The rank of a group which has the part of a rank that there was."""
        owner, buddy = self._members[rank], self._members[self._buddy(rank)]
        for member in (owner, buddy):
            if member in group.members:
                return group.members.index(member)
        raise CopiesLost(f"{owner} is lost, and {buddy}, which had a copy of its part: go on from a checkpoint")


class Packed(NamedTuple):
    """Arrays in one, so that they cross in one message.

    sizes  of each, in bytes
    data   their bytes, one behind the other
    """

    sizes: np.ndarray
    data: np.ndarray

    @classmethod
    def none(cls) -> "Packed":
        """No arrays."""
        return cls.room(np.zeros(0, np.int64))

    @classmethod
    def of(cls, arrays: Sequence[np.ndarray]) -> "Packed":
        """Copies of arrays."""
        found = cls.room(np.array([array.nbytes for array in arrays], np.int64))
        for part, array in zip(found.arrays([array.dtype for array in arrays]), arrays, strict=True):
            part[:] = array.reshape(-1)
        return found

    @classmethod
    def room(cls, sizes: np.ndarray) -> "Packed":
        """For arrays of these sizes."""
        return cls(sizes, np.empty(int(sizes.sum()), np.uint8))

    def arrays(self, dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        """The arrays, flat, where they are."""
        parts = np.split(self.data, np.cumsum(self.sizes)[:-1])
        return [part.view(dtype) for part, dtype in zip(parts, dtypes, strict=True)]
