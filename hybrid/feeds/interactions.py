"""Who took what, and when: as columns, and as a history of each user."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from .. import check
from .ragged import spans


class Ratings(NamedTuple):
    """N ratings in file order: user[n] rated item[n] at time[n].

    user    (N,) int32, ids from 0 to U - 1
    item    (N,) int32, ids from 0 to I - 1
    time    (N,) int64 or float64; where the file has no times, the number of the row
    users   U names, in the order of first appearance
    items   I names, those rated most often first, equal counts in alphabetical order
    weight  (N,) float32, how much each counts; None: all count 1
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None


class Histories(NamedTuple):
    """The items of each of U users in the order of time.

    item          (N,) int32, all histories one after another
    at            (U + 1,) int64, user u has item[at[u] : at[u + 1]]
    users, items  names, see `Ratings`
    weight        (N,) float32, how much each item counts as a target; None: all count 1
    time          (N,) when each was taken, as in `Ratings`; None: not known
    """

    item: np.ndarray
    at: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None
    time: np.ndarray | None = None

    @property
    def sha256(self) -> str:
        """Digest of the names, the histories and the weights."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        digest.update(self.item.data)
        digest.update(self.at.data)
        if self.weight is not None:
            digest.update(self.weight.data)
        return digest.hexdigest()

    def only(self, kept: np.ndarray) -> "Histories":
        """The histories of some of the items; kept (N,) bool."""
        at = np.concatenate([[0], np.cumsum(kept)])[self.at]
        weight, time = (None if part is None else part[kept] for part in (self.weight, self.time))
        return Histories(self.item[kept], at, self.users, self.items, weight, time)


def histories(ratings: Ratings) -> Histories:
    """The history of each user, in the order of time; equal times in file order. Raises ValueError for anything but Ratings."""
    if not isinstance(ratings, Ratings):
        raise ValueError(
            f"ratings: found {type(ratings).__name__}, expected Ratings, as load(path), from_columns(user, item, time) or "
            "from_matrix(matrix) give them"
        )
    order = np.lexsort((np.arange(len(ratings.user)), ratings.time, ratings.user))
    at = np.concatenate([[0], np.cumsum(np.bincount(ratings.user, minlength=len(ratings.users)))])
    weight = None if ratings.weight is None else ratings.weight[order]
    return Histories(ratings.item[order], at, ratings.users, ratings.items, weight, ratings.time[order])


# What a model sees of a history: its last items in a bag, by age, side by side, or as a sequence.

BAG, DECAY, CONCATENATED, SEQUENCE = ORDERS = ("bag", "decay", "concatenated", "sequence")


class Order(NamedTuple):
    """How the last items of a history become what an engine reads.

    kind    "bag": the mean of their rows. "decay": a weighted mean, whose weights fall by age. "concatenated": row beside
            row, the last item at the last place, and before a short history the row `items`, which stands for no item.
            "sequence": each at a place of a window, which a SequenceFeed learns from, for a trunk with sequence=length
    length  most items that are seen
    decay   of "decay": an item weighs `decay` times as much as the one after it; weights sum to 1
    """

    kind: str = BAG
    length: int = 5
    decay: float = 0.8

    def checked(self) -> "Order":
        """Itself; ValueError for an unknown kind, a length below 1 and a decay outside 0 to 1."""
        check.choice("order", self.kind, ORDERS)
        check.whole("length", self.length, 1)
        if check.number("decay", self.decay, 0) > 1:
            raise ValueError(f"decay: found {self.decay}, expected a number from 0 to 1")
        return self

    @property
    def padded(self) -> bool:
        """Whether a row more than there are items stands where a short history has none."""
        return self.kind in (CONCATENATED, SEQUENCE)

    @property
    def embedding(self) -> dict[str, Any]:
        """The arguments of an Embedding that takes it."""
        if self.kind in (BAG, DECAY):
            return {"mean": True} | ({"weighted": True} if self.kind == DECAY else {})
        return {"per_example": self.length if self.kind == CONCATENATED else 1}

    def read(
        self, item: np.ndarray, first: np.ndarray, last: np.ndarray, items: int
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """The ids, bag_at and values of a Batch, whose example b sees the last of item[first[b] : last[b]].

        items  how many there are: the row that stands for none

        Not of "sequence".
        """
        if self.kind == CONCATENATED:
            at = last[:, None] + np.arange(-self.length, 0)
            return _padded(item, at, at >= first[:, None], items), None, None
        places, bag_at = spans(np.maximum(first, last - self.length), last)
        if self.kind == BAG:
            return item[places], bag_at, None
        weights = np.power(self.decay, np.repeat(last, np.diff(bag_at)) - 1 - places)
        sums = np.add.reduceat(np.append(weights, 0.0), bag_at[:-1]) if len(last) else np.empty(0)
        return item[places], bag_at, (weights / np.repeat(sums, np.diff(bag_at))).astype(np.float32)

    def question(self, histories: Histories, users: np.ndarray) -> dict[str, Any]:
        """What comes next for some users (B,), as the arguments of Engine.hidden, best and scores."""
        first, last, items = histories.at[:-1][users], histories.at[1:][users], len(histories.items)
        if self.kind != SEQUENCE:
            ids, bag_at, values = self.read(histories.item, first, last, items)
            given = {"ids": ids, "bag_at": bag_at, "values": values}
            return {name: array for name, array in given.items() if array is not None}
        begin = np.maximum(first, last - self.length)
        at = begin[:, None] + np.arange(self.length)
        rows = np.arange(len(users)) * self.length + np.maximum(last - begin - 1, 0)
        return {"ids": _padded(histories.item, at, at < last[:, None], items), "rows": rows}


def _padded(item: np.ndarray, at: np.ndarray, there: np.ndarray, items: int) -> np.ndarray:
    """The items at some places, flat int32, and `items` where there is none."""
    found = np.full(at.shape, items, np.int32)
    found[there] = item[at[there]]
    return found.reshape(-1)
