"""What a feed is: a sequence of batches, each a pure function of the feed's arguments and the tick.

So a run can stop at any tick and go on with the same bytes, and a feed has no state to save. What a feed keeps (the order
of an epoch, a block of pairs) makes it quicker and changes no batch, whatever the order in which batches are asked for.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import check


class Batch(NamedTuple):
    """B examples. The arrays may be views of the feed's own: nobody else writes to them.

    ids        (N,) int32, rows of the input table; None where there is x
    bag_at     (B + 1,) int64: example b is the mean of the rows ids[bag_at[b] : bag_at[b + 1]];
               None: every example has the same number of ids, N / B, in order (a context to concatenate, or one id)
    target     (B,) int32, the class that each example is to predict; with target_at (M,)
    weight     (B,) float32 of at least 0: multiplies an example's loss, its gradient and its part of every move, but not
               the weight decay of the rows that it visits; None: 1. The loss of a batch is the weighted mean
    values     (N,) float32: example b is the sum of values[n] times the row ids[n] over its bag; None: the mean of its rows
    x          (B, width) float32: what the trunk reads, instead of ids
    target_at  (B + 1,) int64: example b has the classes target[target_at[b] : target_at[b + 1]], and its loss is their mean;
               one without any counts as little as one of weight 0, except for a readout that learns from it, as a label
               tree does. None: every example has one class
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
        """B."""
        return len(self.target) if self.target_at is None else len(self.target_at) - 1

    def total(self, unlabelled: bool = False) -> float:
        """How many examples count, or the sum of their weights: what a sum over them is divided by to be a mean; may be 0.

        unlabelled  whether examples without a target count, see Readout.counts_unlabelled
        """
        there = None if unlabelled or self.target_at is None else np.diff(self.target_at) > 0
        if self.weight is None:
            return self.examples if there is None else float(there.sum())
        return float((self.weight if there is None else self.weight[there]).sum(dtype=np.float64))


class Feed(Protocol):
    """The batches of all epochs: feed[tick] -> Batch, for len(feed) = epochs * ticks_per_epoch ticks.

    rows             how many input ids there are
    classes          how many classes there are
    counts           (classes,) int64, how often each class occurs in the training data
    batch            most examples that a batch can have; it may have none
    most_ids         most ids that a batch can have
    epochs           how often the training data are gone through
    ticks_per_epoch  batches of one epoch

    and where its batches have x or target_at:

    width            numbers of an example's x; rows and most_ids are 0
    most_targets     most targets that a batch can have
    """

    rows: int
    classes: int
    counts: np.ndarray
    batch: int
    most_ids: int
    epochs: int
    ticks_per_epoch: int

    def __len__(self) -> int:
        """Ticks in total."""

    def __getitem__(self, tick: int) -> Batch:
        """The batch of a tick; IndexError outside [0, len)."""

    def describe(self) -> dict[str, Any]:
        """What the batches depend on, as JSON can hold it: kind, arguments and the sha256 of the data.

        Feeds with equal descriptions give equal batches.
        """


def width(feed: Any) -> int:
    """Numbers of an example's x; 0: the examples have ids."""
    return int(getattr(feed, "width", 0))


def most_targets(feed: Any) -> int:
    """Most targets that a batch can have."""
    return int(getattr(feed, "most_targets", feed.batch))


def asked(feed: Any, tick: int) -> Any:
    """feed[tick]; where the feed raises, a note of the tick is added to the error."""
    try:
        return feed[tick]
    except StopIteration as failure:  # in a generator that asks, this would look like the end of the feed
        raise RuntimeError(f"the feed raised StopIteration at tick {tick}") from failure
    except BaseException as failure:
        failure.add_note(f"in the feed, at tick {tick}")
        raise


class Epochs:
    """A sequence of epochs * ticks_per_epoch batches; a feed is a subclass with `_cut`, the batch of a tick of an epoch."""

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
        """What `describe` returns: the kind, the digest of the data, and the attributes of these names."""
        return {"kind": kind, "data": data} | {name: getattr(self, name) for name in names}


class Permuted:
    """Places in a permutation drawn from (seed, epoch), or in every epoch as they are; the order of one epoch is kept."""

    def __init__(self, places: np.ndarray, seed: int, shuffle: bool):
        self.places, self.seed, self.shuffle = places, seed, shuffle
        self._order: tuple[int | None, np.ndarray] = (None, places)

    def part(self, epoch: int, tick: int, size: int) -> np.ndarray:
        """The places of a tick of an epoch, `size` a tick."""
        if self.shuffle and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(self.places)
        return self._order[1][tick * size : (tick + 1) * size]


def check_sizes(seed: int, **sizes: int) -> None:
    """ValueError unless each size is a whole number of at least 1, and the seed one of at least 0."""
    for name, value in sizes.items():
        check.whole(name, value, 1)
    check.whole("seed", seed, 0)


def shuffled_by(seed: int | None) -> tuple[int, bool]:
    """A seed, and whether anything is shuffled: not by None, of which the seed is 0."""
    return (0, False) if seed is None else (seed, True)
