"""Which rows ranks lend each other in a batch, and which gradients come back: every rank knows all ids, so nobody asks.

Row i is on rank i mod size, as row i // size of its own. Frequent ids mostly stand first, as in a vocabulary, and blocks of
rows would leave most visits to the first rank; so rows are dealt out one by one.
"""

from typing import NamedTuple

import numpy as np


class Shard(NamedTuple):
    """The rows of one rank.

    rank, size  which rank it is, of how many
    """

    rank: int
    size: int

    def count(self, rows: int) -> int:
        """How many of a table's rows it has."""
        return len(range(self.rank, rows, self.size))

    def own(self, example_at: np.ndarray) -> slice:
        """Its examples, where rank r has those from example_at[r] to example_at[r + 1]."""
        return slice(int(example_at[self.rank]), int(example_at[self.rank + 1]))

    def whose(self, rank: int | None, examples: int) -> tuple[slice, np.ndarray | None]:
        """Its examples of those that one rank has, and where those of each rank begin; None: every rank has all, and None."""
        if rank is None:
            return slice(None), None
        example_at = np.where(np.arange(self.size + 1) > rank, examples, 0)
        return self.own(example_at), example_at


class Loan(NamedTuple):
    """Rows that the examples of each rank read: each of them goes to a rank once, however often its examples name it.

    give   for each rank, the rows that this rank lends it, as they stand in its own table
    take   (size,) how many rows come from each rank; they lie one after another
    place  (n,) which of the rows that have come each id of this rank's examples names
    """

    give: list[np.ndarray]
    take: np.ndarray
    place: np.ndarray


class Visit(NamedTuple):
    """Examples that go to the ranks which have something of their paths.

    give  for each rank, which of this rank's examples
    take  (size,) how many come from each rank; they lie one after another
    come  (n,) which examples of the batch they are
    """

    give: list[np.ndarray]
    take: np.ndarray
    come: np.ndarray


class Return(NamedTuple):
    """Gradients on their way to the ranks that have the rows, each to a rank once.

    give   for each rank, which of this rank's gradients it needs
    take   (size,) how many come from each rank; they lie one after another
    visit  (n,) the batch's ids whose rows are on this rank, by their places in the batch
    row    (n,) those rows, as they stand in its own table
    of     (n,) which of the gradients that have come moves each
    """

    give: list[np.ndarray]
    take: np.ndarray
    visit: np.ndarray
    row: np.ndarray
    of: np.ndarray


def loan(shard: Shard, ids: np.ndarray, id_at: np.ndarray) -> Loan:
    """ids (N,) of a whole batch; ids[id_at[r]:id_at[r + 1]] are of the examples of rank r."""
    parts = np.split(ids, id_at[1:-1])
    give = [np.unique(part[part % shard.size == shard.rank]) // shard.size for part in parts]
    wanted, of = np.unique(parts[shard.rank], return_inverse=True)
    owner = wanted % shard.size
    order = np.argsort(owner, kind="stable")
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size)
    return Loan(give, np.bincount(owner, minlength=shard.size), place[of])


def giving_back(
    shard: Shard, ids: np.ndarray, id_at: np.ndarray, gradient: np.ndarray, gradient_at: np.ndarray
) -> Return:
    """As `loan`; gradient (N,): which gradient of the whole batch moves the row of each id, never falling, where rank r has
    the gradients gradient_at[r] to gradient_at[r + 1].
    """
    own = slice(id_at[shard.rank], id_at[shard.rank + 1])
    owner = ids[own] % shard.size
    give = [_runs(gradient[own][owner == rank]) - gradient_at[shard.rank] for rank in range(shard.size)]
    visit = np.flatnonzero(ids % shard.size == shard.rank)
    begins = _begins(gradient[visit])
    giver = np.searchsorted(gradient_at, gradient[visit[begins]], "right") - 1
    of = (np.cumsum(begins) - 1).astype(np.int32)
    return Return(give, np.bincount(giver, minlength=shard.size), visit, ids[visit] // shard.size, of)


def visits(shard: Shard, meets: np.ndarray, example_at: np.ndarray) -> Visit:
    """meets (B, size) bool: which ranks each example goes to; rank r has the examples example_at[r] to example_at[r + 1]."""
    own = meets[example_at[shard.rank] : example_at[shard.rank + 1]]
    come = np.flatnonzero(meets[:, shard.rank])
    return Visit([np.flatnonzero(meet) for meet in own.T], np.diff(np.searchsorted(come, example_at)), come)


def even(examples: int, size: int) -> np.ndarray:
    """Where the examples of each rank begin, (size + 1,), if they have even shares."""
    return np.arange(size + 1) * examples // size


def _begins(values: np.ndarray) -> np.ndarray:
    """Where runs of one value begin, (n,) bool."""
    found: np.ndarray = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _runs(values: np.ndarray) -> np.ndarray:
    """The value of each run."""
    found: np.ndarray = values[_begins(values)]
    return found
