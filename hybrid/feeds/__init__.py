"""The feed protocol: a sequence of batches, each a pure function of the feed's arguments and the tick.

A run can therefore stop at any tick and resume with the same bytes, and a feed has no state to save. A feed may cache data (the
order of an epoch, a block of pairs). The cache never changes a batch, whatever the order of access.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import check


class Batch(NamedTuple):
    """A batch of B examples. The arrays may be views of the feed's own memory, so consumers must not write to them.

    ids        (N,) int32, rows of the input table; None if x is set
    bag_at     (B + 1,) int64: example b is the mean of the rows ids[bag_at[b] : bag_at[b + 1]]; None: every example has the
               same number of ids, N / B, in order (a context to concatenate, or one id)
    target     (B,) int32, the target class of each example; (M,) with target_at
    weight     (B,) float32 of at least 0, default 1: multiplies an example's loss, gradient and update, but not the weight
               decay of the rows that it reads. The loss of a batch is the weighted mean
    values     (N,) float32: example b is the sum of values[n] times the row ids[n] over its bag; None: the mean of its rows
    x          (B, width) float32: input of the trunk, instead of ids
    target_at  (B + 1,) int64: example b has the classes target[target_at[b] : target_at[b + 1]], and its loss is their mean. An
               example without classes counts as one of weight 0. None: every example has one class
    """

    ids: np.ndarray | None
    bag_at: np.ndarray | None
    target: np.ndarray
    weight: np.ndarray | None = None
    values: np.ndarray | None = None
    x: np.ndarray | None = None
    target_at: np.ndarray | None = None

    @property
    def examples(self) -> int:
        """The number of examples B."""
        return len(self.target) if self.target_at is None else len(self.target_at) - 1

    def total(self) -> float:
        """Returns the number of examples that count, or the sum of their weights: the divisor of a mean loss; may be 0."""
        there = None if self.target_at is None else np.diff(self.target_at) > 0
        if self.weight is None:
            return self.examples if there is None else float(there.sum())
        return float((self.weight if there is None else self.weight[there]).sum(dtype=np.float64))


class Feed(Protocol):
    """The batches of all epochs: feed[tick] -> Batch, for len(feed) = epochs * ticks_per_epoch ticks.

    rows             number of input ids
    classes          number of classes
    counts           (classes,) int64, the count of each class in the training data
    batch            maximum examples of a batch; a batch may be empty
    most_ids         maximum ids of a batch
    epochs           number of passes over the training data
    ticks_per_epoch  batches per epoch

    A feed whose batches have x or target_at also has:

    width            features of x per example; rows and most_ids are 0
    most_targets     maximum targets of a batch
    """

    rows: int
    classes: int
    counts: np.ndarray
    batch: int
    most_ids: int
    epochs: int
    ticks_per_epoch: int

    def __len__(self) -> int:
        """Returns the total number of ticks."""

    def __getitem__(self, tick: int) -> Batch:
        """Returns the batch of a tick; IndexError outside [0, len)."""

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-compatible description of what the batches depend on: kind, arguments and the sha256 of the data.

        Feeds with equal descriptions give equal batches.
        """


def width(feed: Any) -> int:
    """Returns the number of features of x per example, or 0 if the examples have ids."""
    return int(getattr(feed, "width", 0))


def most_targets(feed: Any) -> int:
    """Returns the maximum number of targets of a batch."""
    return int(getattr(feed, "most_targets", feed.batch))


def asked(feed: Any, tick: int) -> Any:
    """Returns feed[tick]; adds a note with the tick to an error that the feed raises."""
    try:
        return feed[tick]
    except StopIteration as failure:  # inside a generator, StopIteration would look like the end of the feed
        raise RuntimeError(f"the feed raised StopIteration at tick {tick}") from failure
    except BaseException as failure:
        failure.add_note(f"in the feed, at tick {tick}")
        raise


class Epochs:
    """A sequence of epochs * ticks_per_epoch batches; a subclass defines `_cut`, the batch of a tick of an epoch."""

    def __init__(self, epochs: int, ticks_per_epoch: int):
        self.epochs, self.ticks_per_epoch = epochs, ticks_per_epoch

    def __len__(self) -> int:
        return self.epochs * self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        if not 0 <= tick < len(self):
            raise IndexError(f"tick: found {tick}, expected 0 to {len(self) - 1}")
        return self._cut(*divmod(tick, self.ticks_per_epoch))

    def _cut(self, epoch: int, tick: int) -> Batch:
        raise NotImplementedError

    def _described(self, kind: str, data: str, *names: str) -> dict[str, Any]:
        """Returns the result of `describe`: the kind, the digest of the data, and the named attributes."""
        return {"kind": kind, "data": data} | {name: getattr(self, name) for name in names}


class Permuted:
    """Positions in a permutation drawn from (seed, epoch), or in the original order; the order of one epoch is cached."""

    def __init__(self, places: np.ndarray, seed: int, shuffle: bool):
        self.places, self.seed, self.shuffle = places, seed, shuffle
        self._order: tuple[int | None, np.ndarray] = (None, places)

    def part(self, epoch: int, tick: int, size: int) -> np.ndarray:
        """Returns the positions of a tick of an epoch, `size` per tick."""
        if self.shuffle and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(self.places)
        return self._order[1][tick * size : (tick + 1) * size]


def check_sizes(seed: int, **sizes: int) -> None:
    """Raises ValueError unless each size is an integer of at least 1, and the seed one of at least 0."""
    for name, value in sizes.items():
        check.whole(name, value, 1)
    check.whole("seed", seed, 0)


def shuffled_by(seed: int | None) -> tuple[int, bool]:
    """Returns the seed (0 for None), and True if the order is shuffled (False for None)."""
    return (0, False) if seed is None else (seed, True)
