"""The input table in shards: each rank has some of its rows, lends them to all, and moves them by everybody's gradients."""

from typing import Any

import numpy as np

from ..engine.embedding import Embedding
from ..engine.slot import Slot
from ..ranks.group import Group
from .refused import check_settings, refuse_copy
from .routes import Shard, even, giving_back, loan
from .saved import Spread

PIECE = 2**20  # numbers of the table that are drawn together


class ShardedEmbedding(Embedding):
    """An Embedding whose row i is on rank i mod size; a table of any size, where each rank has room for its share.

    group     the ranks that share it: they make the same calls in the same order
    settings  of Embedding; the numbers are those of an Embedding with the same ones, bit for bit

    What begins is a function of the seed and the row: each rank draws all rows, piece by piece, and keeps its own. `table`,
    `vectors` and `parameters` are of this rank: rows rank, rank + size, ... Raises ValueError for rows on a GPU,
    and for what Embedding refuses.
    """

    sharded = True

    def __init__(self, group: Group, rows: int, width: int, **settings: Any):
        self.group, self.shard = group, Shard(group.rank, group.size)
        check_settings("rows", settings)
        super().__init__(rows, width, **settings)

    def _first(self) -> np.ndarray:
        kept: np.ndarray = np.empty((self.shard.count(self.rows), self.width), np.float32)
        step = max(1, PIECE // (self.shard.size * self.width))  # rows of this rank in a piece
        for at in range(0, len(kept), step):
            first, last = at * self.shard.size, min((at + step) * self.shard.size, self.rows)
            kept[at : at + step] = self._drawn(first, last)[self.shard.rank :: self.shard.size]
        return kept

    def forward(self, x: Any, bag_at: Any, ids: Any, values: Any = None, example_at: np.ndarray | None = None) -> None:
        """Write x (B, outputs), of all examples on every rank, as an Embedding does; or of this rank's examples alone.

        bag_at, ids, values  of the whole batch, the examples of rank 0 first; else as in Embedding
        example_at           (size + 1,) int64: rank r has the examples example_at[r] to example_at[r + 1]; None: each has all
        """
        if example_at is not None:
            self._gathered(x, bag_at, ids, values, example_at)
            return
        example_at = even(len(x), self.shard.size)
        self._gathered(x[self.shard.own(example_at)], bag_at, ids, values, example_at)
        self.group.join_rows(x, example_at)

    def _gathered(self, x: Any, bag_at: Any, ids: Any, values: Any, example_at: np.ndarray) -> None:
        rank, id_at = self.shard.rank, self._id_at(bag_at, example_at)
        lent = loan(self.shard, ids, id_at)
        come = self._swapped([self.table[rows] for rows in lent.give], lent.take)
        if bag_at is None:
            self.backend.rows.gather(x.reshape(-1, self.width), come, lent.place)
        else:
            bags = bag_at[example_at[rank] : example_at[rank + 1] + 1] - id_at[rank]
            own = None if values is None else values[id_at[rank] : id_at[rank + 1]]
            self.backend.rows.gather_mean(x, come, bags, lent.place, own)

    def backward(
        self, bag_at: Any, ids: Any, x_grad: Any, scale: float, values: Any = None, example_at: np.ndarray | None = None
    ) -> None:
        """Move this rank's rows of all ids, in the order of the whole batch; x_grad and the rest are as in `forward`."""
        from cpu import rows

        if example_at is None:
            example_at = even(len(x_grad), self.shard.size)
            x_grad = x_grad[self.shard.own(example_at)]
        id_at, rate = self._id_at(bag_at, example_at), self.rate * scale
        if bag_at is None:
            back = giving_back(self.shard, ids, id_at, np.arange(ids.size), id_at)
            come = self._swapped([x_grad.reshape(-1, self.width)[of] for of in back.give], back.take)
            rows.scatter(self._there, back.row, come, rate)
            return
        sizes = np.diff(bag_at)
        if self.undivided:
            x_grad *= sizes[self.shard.own(example_at), None]
        bag = np.repeat(np.arange(sizes.size), sizes)  # of each id
        back = giving_back(self.shard, ids, id_at, bag, example_at)
        come = self._swapped([x_grad[of] for of in back.give], back.take)
        own = None if values is None else values[back.visit]
        rows.scatter_shares(self._there, back.row, back.of, sizes[bag[back.visit]], own, come, rate)

    def _gather(self, slot: Slot) -> None:
        own, example_at = self.shard.whose(slot.rank, slot.count)
        self.forward(slot.x[own], slot.bag_at, slot.ids, slot.values, example_at)

    def _scatter(self, slot: Slot) -> None:
        own, example_at = self.shard.whose(slot.rank, slot.count)
        self.backward(slot.bag_at, slot.ids, slot.x_grad[own], slot.scale, slot.values, example_at)

    def saved(self) -> dict[str, np.ndarray | Spread]:
        """The arrays of a checkpoint of all ranks, by the names of an Embedding's parameters; see saved.py."""
        numbers, size = np.arange(self.shard.rank, self.rows, self.shard.size, dtype=np.int32), self.shard.size
        return {
            name: Spread(array, numbers, self.rows, lambda first, last: np.arange(first, last) % size)
            for name, array in self.parameters().items()
        }

    def add_rows(self, count: int, at: int | None = None) -> None:
        """Refused: a table in shards keeps its rows."""
        raise ValueError(
            "rows: found a table in shards, expected one of one rank; add rows before it is trained on ranks"
        )

    def _id_at(self, bag_at: Any, example_at: np.ndarray) -> np.ndarray:
        """Where the ids of each rank begin, and end: (size + 1,)."""
        found: np.ndarray = example_at * self.per_example if bag_at is None else bag_at[example_at]
        return found

    def _swapped(self, give: list[np.ndarray], take: np.ndarray) -> np.ndarray:
        """What comes from all ranks, (n, width), for what goes to each of them."""
        come: np.ndarray = np.empty((int(take.sum()), self.width), np.float32)
        self.group.swap(give, np.split(come, np.cumsum(take)[:-1]))
        return come

    def __reduce__(self) -> tuple[Any, ...]:
        refuse_copy("embedding")
