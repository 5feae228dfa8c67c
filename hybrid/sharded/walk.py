"""A batch in a tree in shards: hidden vectors go to the ranks that their paths meet, and answers come back."""

import numpy as np

from cpu import tree_shard
from cpu.array import Array
from cpu.tree import Tree

from ..ranks.group import Group
from .routes import Shard, visits


class Walk:
    """The paths of the examples of all ranks. Everybody knows all targets, so everybody knows who meets whom.

    rank_of  (O,) the rank of each owner

    paths  (N, depth + 1) int32  2 * node + turn, leaf first, then -1 once
    cuts   (N, O + 1) int32      where the nodes of each owner begin on a path
    own    the examples of this rank, a slice
    come   (n,) the examples whose paths meet this rank
    """

    def __init__(self, group: Group, tree: Tree, rank_of: Array, target: Array, example_at: Array):
        self._group, self._tree, self._rank_of = group, tree, rank_of
        self.paths: Array = np.empty((len(target), tree.depth + 1), np.int32)
        self.cuts: Array = np.empty((len(target), rank_of.size + 1), np.int32)
        tree_shard.climb(self.paths, self.cuts, tree, target)
        self._met = self.cuts[:, 1:] > self.cuts[:, :-1]
        meets = np.column_stack([self._met[:, rank_of == rank].any(axis=1) for rank in range(group.size)])
        self._visit = visits(Shard(group.rank, group.size), meets, example_at)
        self.own = slice(int(example_at[group.rank]), int(example_at[group.rank + 1]))
        self.come = self._visit.come

    def bring(self, hidden: Array) -> Array:
        """The hidden vectors (n, D) of those that meet this rank; hidden (B, D) of this rank's examples."""
        come: Array = np.empty((self.come.size, hidden.shape[1]), hidden.dtype)
        self._group.swap([hidden[examples] for examples in self._visit.give], _split(come, self._visit.take))
        return come

    def owners_found(self, grads: Array, losses: Array) -> tuple[Array, Array]:
        """What all owners have found for this rank's examples, as `tree_shard.add` takes it, from what this rank's own have
        found for those that meet it, as `tree_shard.learn` leaves it.
        """
        example, owner = np.nonzero(self._of_owners(self.come, self._group.rank))
        found = np.column_stack([grads[owner * self.come.size + example], losses[owner, example]])
        asked = [self._of_owners(self.own, rank) for rank in range(self._group.size)]
        own, owners = self.own.stop - self.own.start, self._rank_of.size
        grads, losses = np.empty((owners * own, grads.shape[1]), grads.dtype), np.empty((owners, own), grads.dtype)
        for rank, part in enumerate(self._back(example, found, asked)):
            example, place = np.nonzero(asked[rank])
            owner = np.flatnonzero(self._rank_of == rank)[place]
            grads[owner * own + example], losses[owner, example] = part[:, :-1], part[:, -1]
        return grads, losses

    def scores_found(self, scores: Array, lengths: Array) -> Array:
        """The scores (B, depth) of the nodes on the paths of this rank's examples, from those of this rank's nodes on the paths
        that meet it, scores (n, depth), of which the first lengths (n,) count.
        """
        mine = np.arange(scores.shape[1]) < lengths[:, None]
        paths, ends = self.paths[self.own, :-1], self.cuts[self.own, -1:]
        rank_of = np.full(paths.shape, -1)
        on = np.arange(paths.shape[1]) < ends
        rank_of[on] = self._rank_of[self._tree.owner[paths[on] >> 1]]
        found: Array = np.empty(paths.shape, scores.dtype)
        asked = [rank_of == rank for rank in range(self._group.size)]
        for mask, part in zip(asked, self._back(np.nonzero(mine)[0], scores[mine][:, None], asked), strict=True):
            found[mask] = part[:, 0]
        return found

    def _of_owners(self, examples: "Array | slice", rank: int) -> Array:
        """Which owners of a rank these examples meet."""
        found: Array = self._met[examples][:, self._rank_of == rank]
        return found

    def _back(self, example: Array, found: Array, asked: list[Array]) -> list[Array]:
        """Send home found (m, W), where example (m,) says for whom of those that came, rising; returns what came from each
        rank, as much as its mask in `asked` is True.
        """
        home = np.searchsorted(example, np.cumsum(self._visit.take))
        counts = np.array([np.count_nonzero(mask) for mask in asked])
        parts = _split(np.empty((int(counts.sum()), found.shape[1]), found.dtype), counts)
        self._group.swap(np.split(found, home[:-1]), parts)
        return parts


def _split(array: Array, counts: Array) -> list[Array]:
    """So many rows after one another: views."""
    return np.split(array, np.cumsum(counts)[:-1])
