"""What a user chose so far, and what he chose next: what a recommender learns from."""

from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs
from .interactions import BAG, DECAY, SEQUENCE, Histories, Order
from .ragged import spans


class HistoryFeed(Epochs):
    """Every item of a history but its first is a target; its input is made of up to `length` items before it. A `Feed`.

    histories  the items of each user in the order of time; rows and classes are both the items
    length     most items before a target that are its input
    batch      examples of a batch; the last one of an epoch may have fewer
    epochs     how often the histories are gone through
    seed       each epoch is a permutation of the targets, drawn from (seed, epoch)
    shuffle    False: each epoch is in the order of users and times
    order      "bag", "decay" or "concatenated", see feeds/interactions.py: the mean of the items' rows, a mean in which an
               item weighs `decay` times as much as the one after it, or row beside row. Order(...).embedding has the
               arguments of the Embedding that each needs; a SequenceFeed learns at every place of a history at once

    Raises ValueError where no user has two items, and ValueError or IndexError for arrays that do not fit together.
    """

    def __init__(
        self,
        histories: Histories,
        *,
        length: int = 5,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        order: str = BAG,
        decay: float = 0.8,
    ):
        for name, value in (("length", length), ("batch", batch), ("epochs", epochs)):
            check.whole(name, value, 1)
        check.whole("seed", seed, 0)
        if not isinstance(histories, Histories):
            raise ValueError(
                f"histories: found {type(histories).__name__}, expected Histories; from columns of a table: "
                "ratings.histories(ratings.from_columns(user, item, time)), of hybrid.feeds.ratings"
            )
        histories = checked(histories)
        self.histories, self.length, self.batch, self.seed, self.shuffle = histories, length, batch, seed, shuffle
        self.order = Order(order, length, decay).checked()
        if order == SEQUENCE:
            raise ValueError(f"order: found {order!r}, expected another one; SequenceFeed makes batches of sequences")
        sizes = np.diff(histories.at)
        before = np.arange(len(histories.item)) - np.repeat(histories.at[:-1], sizes)  # items before each, of its user
        self._at = np.flatnonzero(before)
        if not len(self._at):
            raise ValueError(f"histories: none of {len(sizes)} users has 2 items; expected some to learn from")
        self._before = before
        self._order: tuple[int, np.ndarray] = (-1, self._at)
        self.classes = len(histories.items)
        self.rows = self.classes + self.order.padded
        self.counts = np.bincount(histories.item, minlength=self.classes)
        self.most_ids = batch * length
        super().__init__(epochs, -(-len(self._at) // batch))

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        names = ("length", "batch", "epochs", "seed", "shuffle")
        told = {"kind": "histories", "data": self.histories.sha256} | {name: getattr(self, name) for name in names}
        told |= {} if self.order.kind == BAG else {"order": self.order.kind}
        return told | ({"decay": self.order.decay} if self.order.kind == DECAY else {})

    def _cut(self, epoch: int, tick: int) -> Batch:
        if self.shuffle and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(self._at)
        at = self._order[1][tick * self.batch : (tick + 1) * self.batch]
        item, weight = self.histories.item, self.histories.weight
        ids, bag_at, values = self.order.read(item, at - self._before[at], at, self.classes)
        return Batch(ids, bag_at, item[at], None if weight is None else weight[at], values)


def checked(histories: Histories) -> Histories:
    """The histories with int32 items and int64 places; ValueError or IndexError for arrays that do not fit together."""
    item = check.indices("histories.item", histories.item, len(histories.items))
    at = check.bags("histories.at", histories.at, item.size)
    if item.ndim != 1 or len(at) != len(histories.users) + 1:
        raise ValueError(
            f"histories: found item {item.shape} and at {at.shape}, expected item (N,) and at ({len(histories.users) + 1},): "
            "where the items of each user begin, and the end"
        )
    return histories._replace(item=item, at=at)


def whole(histories: Histories, users: np.ndarray, target: np.ndarray, length: int = 5) -> Batch:
    """The last `length` items of each of some users, to predict what comes next.

    users   (B,) numbers of users
    target  (B,) items, which become those of the batch
    """
    return Batch(*lasts(histories, users, length), target)


def lasts(histories: Histories, users: np.ndarray, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The last `length` items of each of some users (None: all), (N,) int32, and where those of each begin, (B + 1,) int64."""
    first, last = histories.at[:-1][users], histories.at[1:][users]
    return _bags(histories.item, first if length is None else np.maximum(first, last - length), last)


def _bags(item: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """item[first[b] : last[b]] of every b, one after another, and where each begins."""
    places, bag_at = spans(first, last)
    return item[places], bag_at
