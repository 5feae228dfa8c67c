"""Unordered sets of items, such as users' purchases: each item is predicted from the others."""

from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs, check_sizes
from .arrays import Inputs, digest, inputs_of
from .ragged import Ragged, spans


class BasketFeed(Epochs):
    """A `Feed` in which every item of every set is a target; its input is the mean of other items of its set.

    baskets  scipy sparse, users x items, whose nonzeros count; or lists of items, each item once
    items    number of items; None: the columns of the matrix, or the largest item plus one
    length   maximum number of other items in an input. In a larger set, they are redrawn in each epoch
    batch    examples per batch; the last one of an epoch may have fewer
    epochs   number of passes over the sets
    seed     each epoch is a permutation of the targets, drawn from (seed, epoch)

    If items have times, use `HistoryFeed`. Raises ValueError if no set has two items, and ValueError or IndexError for
    malformed sets.
    """

    def __init__(
        self,
        baskets: Any,
        *,
        items: int | None = None,
        length: int = 50,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
    ):
        check_sizes(seed, length=length, batch=batch, epochs=epochs)
        sets = inputs_of(baskets, items, weighted=False)
        self._baskets = _expect_sets(sets)
        self.length, self.batch, self.seed = length, batch, seed
        self.rows = self.classes = check.classes(sets.rows)
        self._at = self._baskets.at
        sizes = np.diff(self._at)
        self._set = np.repeat(np.arange(len(sizes)), sizes)  # the set of each position
        self._places = np.flatnonzero(sizes[self._set] > 1)
        if not len(self._places):
            raise ValueError(f"baskets: none of {len(sizes)} has 2 items; expected some to learn from")
        self.counts = np.bincount(self._baskets.ids, minlength=self.classes)
        self.most_ids = batch * min(length, int(sizes.max()) - 1)
        self._epoch: tuple[int, np.ndarray, np.ndarray] = (-1, self._places, self._baskets.ids)
        super().__init__(epochs, -(-len(self._places) // batch))

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        data = digest(self._baskets, self.rows)
        return self._described("baskets", data, "length", "batch", "epochs", "seed")

    def _cut(self, epoch: int, tick: int) -> Batch:
        if self._epoch[0] != epoch:
            self._epoch = epoch, *self._drawn(epoch)
        _, order, items = self._epoch
        target = order[tick * self.batch : (tick + 1) * self.batch]
        places, bag_at = self._others(target)
        return Batch(items[places], bag_at, items[target])

    def _drawn(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the positions of the targets in epoch order, and the items with each set shuffled."""
        rng = np.random.default_rng([self.seed, epoch])
        items = self._baskets.ids[np.lexsort((rng.random(len(self._set)), self._set))]
        return rng.permutation(self._places), items

    def _others(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns up to `length` positions that follow each target cyclically in its set, and their offsets."""
        first = self._at[self._set[target]]
        sizes = self._at[self._set[target] + 1] - first
        steps, bag_at = spans(np.ones_like(sizes), np.minimum(sizes - 1, self.length) + 1)
        of = np.repeat(np.arange(len(target)), np.diff(bag_at))
        return first[of] + (target[of] - first[of] + steps) % sizes[of], bag_at


def _expect_sets(sets: Inputs) -> Ragged:
    """Returns the sets; ValueError unless each set holds every item at most once."""
    if sets.ragged is None:
        raise ValueError("baskets: found an array, expected a scipy sparse matrix or lists of items")
    of = np.repeat(np.arange(len(sets)), np.diff(sets.ragged.at))
    pairs = of * np.int64(sets.rows) + sets.ragged.ids
    if len(np.unique(pairs)) < len(pairs):
        order = np.argsort(pairs, kind="stable")
        twice = order[1:][np.diff(pairs[order]) == 0].min()
        raise ValueError(f"baskets[{of[twice]}]: the item {sets.ragged.ids[twice]} occurs twice, expected once")
    return sets.ragged
