"""Users' item histories in time order, and the item that follows: training data of a recommender."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from .. import check
from . import Batch, Epochs, Permuted, check_sizes, shuffled_by
from .ragged import spans

BAG, SEQUENCE = ORDERS = ("bag", "sequence")


class Histories(NamedTuple):
    """The items of each of U users in time order.

    item          (N,) int32, the concatenated histories
    at            (U + 1,) int64, user u has item[at[u] : at[u + 1]]
    users, items  U and I names
    weight        (N,) float32, the weight of each item as a target; None: all are 1
    time          (N,) times of the items, as in `Ratings`; None: unknown
    """

    item: np.ndarray
    at: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None
    time: np.ndarray | None = None

    @property
    def sha256(self) -> str:
        """The digest of the names, the histories and the weights."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        digest.update(self.item.data)
        digest.update(self.at.data)
        if self.weight is not None:
            digest.update(self.weight.data)
        return digest.hexdigest()

    def only(self, kept: np.ndarray) -> "Histories":
        """Returns the histories of the kept items; kept (N,) bool."""
        at = np.concatenate([[0], np.cumsum(kept)])[self.at]
        weight, time = (None if part is None else part[kept] for part in (self.weight, self.time))
        return Histories(self.item[kept], at, self.users, self.items, weight, time)


class Order(NamedTuple):
    """The conversion of the last items of a history to engine inputs.

    kind    "bag": the mean of their rows. "sequence": positions of a window for SequenceFeed and a trunk with sequence=length;
            the row `items`, which stands for no item, pads a short history
    length  maximum number of items used
    """

    kind: str = BAG
    length: int = 5

    def checked(self) -> "Order":
        """Returns self; ValueError for an unknown kind and a length below 1."""
        check.choice("order", self.kind, ORDERS)
        check.whole("length", self.length, 1)
        return self

    @property
    def embedding(self) -> dict[str, Any]:
        """The arguments of an Embedding that accepts these inputs."""
        return {"bags": "mean"} if self.kind == BAG else {"per_example": 1}

    def question(self, histories: Histories, users: np.ndarray) -> dict[str, Any]:
        """Returns the arguments of Engine.hidden, best and scores that predict the next item of B users."""
        if self.kind == BAG:
            return dict(zip(("ids", "bag_at"), lasts(histories, users, self.length), strict=True))
        first, last, items = histories.at[:-1][users], histories.at[1:][users], len(histories.items)
        begin = np.maximum(first, last - self.length)
        at = begin[:, None] + np.arange(self.length)
        there = at < last[:, None]
        ids = np.full(at.shape, items, np.int32)
        ids[there] = histories.item[at[there]]
        return {"ids": ids.reshape(-1), "rows": np.arange(len(users)) * self.length + np.maximum(last - begin - 1, 0)}


class HistoryFeed(Epochs):
    """A `Feed` in which every item of a history but its first is a target; its input is up to `length` items before it.

    histories  the items of each user in time order; rows and classes are both the items
    length     maximum number of items before a target in its input
    batch      examples per batch; the last one of an epoch may have fewer
    epochs     number of passes over the histories
    seed       each epoch is a permutation of the targets, drawn from (seed, epoch); None: each epoch is in the order of users
               and times

    Order(length=...).embedding holds the matching arguments of Embedding; SequenceFeed learns at every position of a history
    at once.

    Raises ValueError if no user has two items, and ValueError or IndexError for inconsistent arrays.
    """

    def __init__(
        self, histories: Histories, *, length: int = 5, batch: int = 512, epochs: int = 1, seed: int | None = 0
    ):
        self.seed, self.shuffle = shuffled_by(seed)
        check_sizes(self.seed, length=length, batch=batch, epochs=epochs)
        if not isinstance(histories, Histories):
            raise ValueError(
                f"histories: found {type(histories).__name__}, expected Histories, as by "
                "hybrid.ratings.histories(hybrid.ratings.from_columns(user, item, time))"
            )
        histories = checked(histories)
        self.histories, self.length, self.batch = histories, length, batch
        sizes = np.diff(histories.at)
        before = np.arange(len(histories.item)) - np.repeat(histories.at[:-1], sizes)  # earlier items of the same user
        at = np.flatnonzero(before)
        if not len(at):
            raise ValueError(f"histories: none of {len(sizes)} users has 2 items; expected some to learn from")
        self._before, self._order = before, Permuted(at, self.seed, self.shuffle)
        self.rows = self.classes = len(histories.items)
        self.counts = np.bincount(histories.item, minlength=self.classes)
        self.most_ids = batch * length
        super().__init__(epochs, -(-len(at) // batch))

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        return self._described("histories", self.histories.sha256, "length", "batch", "epochs", "seed", "shuffle")

    def _cut(self, epoch: int, tick: int) -> Batch:
        at = self._order.part(epoch, tick, self.batch)
        item, weight = self.histories.item, self.histories.weight
        places, bag_at = spans(at - np.minimum(self._before[at], self.length), at)
        return Batch(item[places], bag_at, item[at], None if weight is None else weight[at])


def checked(histories: Histories) -> Histories:
    """Returns the histories with int32 items and int64 offsets; ValueError or IndexError for inconsistent arrays."""
    item = check.indices("histories.item", histories.item, len(histories.items))
    at = check.bags("histories.at", histories.at, item.size)
    if item.ndim != 1 or len(at) != len(histories.users) + 1:
        raise ValueError(
            f"histories: found item {item.shape} and at {at.shape}, expected item (N,) and at ({len(histories.users) + 1},)"
        )
    return histories._replace(item=item, at=at)


def lasts(histories: Histories, users: np.ndarray, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the last `length` items of each selected user (None: all), (N,) int32, and their offsets, (B + 1,) int64."""
    first, last = histories.at[:-1][users], histories.at[1:][users]
    places, bag_at = spans(first if length is None else np.maximum(first, last - length), last)
    return histories.item[places], bag_at
