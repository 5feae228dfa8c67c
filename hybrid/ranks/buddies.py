"""Copies in memory: each rank's part of a state is kept by another rank too, so that no loss of one takes it."""

from collections.abc import Iterator, Sequence

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
        self._own: list[np.ndarray] = []
        self._kept: list[np.ndarray] = []  # of the rank whose buddy this is

    def keep(self, tick: int, arrays: Sequence[np.ndarray]) -> None:
        """Copy the arrays of all ranks; what was kept before counts until all have the new copies.

        All ranks call it, each with as many arrays, of the same dtypes; how large they are is their own. At a loss it raises
        RankLost on all of them or on none.
        """
        own = [array.flatten() for array in arrays]
        kept = []
        if (group := self._group).size > 1:
            buddy, ward = self._buddy(group.rank), self._ward(group.rank)
            sizes = np.array([array.size for array in own], np.int64)
            theirs = np.empty_like(sizes)
            group.exchange({buddy: sizes}, {ward: theirs}).run()
            kept = [np.empty(size, array.dtype) for size, array in zip(theirs, own, strict=True)]
            for sent, come in zip(own, kept, strict=True):
                group.exchange({buddy: sent}, {ward: come}).run()
            group.agree()
        self.tick, self._own, self._kept = tick, own, kept

    def parts(self, group: Group) -> Iterator[list[np.ndarray]]:
        """The arrays of each rank that there was, in turn and flat, on all ranks of the group of those that remain.

        Of an array on one rank alone, all ranks need the memory, one part at a time. Raises CopiesLost, on all, before the
        first part.
        """
        holders = [self._holder(rank, group) for rank in range(len(self._members))]
        for rank, holder in enumerate(holders):
            here = self._own if self._members[rank] == self._members[self._group.rank] else self._kept
            mine = holder == group.rank
            sizes = np.array([array.size for array in (here if mine else self._own)], np.int64)
            group.share(sizes, holder)
            arrays = here if mine else [np.empty(size, own.dtype) for size, own in zip(sizes, self._own, strict=True)]
            for array in arrays:
                group.share(array, holder)
            yield arrays

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
