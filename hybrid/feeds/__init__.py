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


# Validation of the batches of any feed: kernels index with them, so an invalid batch is rejected here.


class Source(Protocol):
    """The input format of an embedding: its treatment of bags, or else ids per example; or its features of x."""

    bags: str | None
    per_example: int
    dense: int


def fitting(feed: Feed, tick: int, source: Source | None = None, *, several: bool = True, whole: int = 1) -> Batch:
    """Returns feed[tick], with arrays of the shapes and dtypes that `Batch` states.

    source   the consumer of the batch; None: its requirements are not checked
    several  True: an example may have several targets
    whole    the number of examples must be a multiple of this

    Raises, naming feed, tick and array, ValueError for wrong shapes or dtypes, weights below 0, and numbers that are not
    finite. Raises IndexError for an id or a target out of range. An error of the feed itself gets a note with the tick.
    """
    given = asked(feed, tick)
    try:
        batch = _checked(given, feed)
        if source is not None:
            _check_source(batch, source)
        if batch.target_at is not None and not several:
            raise ValueError(
                "target_at: found an array, expected None: this readout takes one target per example, more on a CPU"
            )
        if batch.examples % whole:
            raise ValueError(f"found {batch.examples} examples, expected a multiple of {whole}, the trunk's sequence")
        return batch
    except (ValueError, IndexError) as failure:
        raise type(failure)(f"{type(feed).__name__}[{tick}]: {failure}") from None


def _checked(given: Any, feed: Feed) -> Batch:
    if not all(hasattr(given, name) for name in ("ids", "bag_at", "target")):
        raise ValueError(f"found {type(given).__name__}, expected a Batch(ids, bag_at, target) of hybrid.feeds")
    batch = Batch(**{name: getattr(given, name, None) for name in Batch._fields})  # type: ignore[arg-type]
    target, target_at = _targets(batch, feed)
    batch = batch._replace(target=target, target_at=target_at)
    if batch.x is not None:
        for name in ("ids", "bag_at", "values"):
            if getattr(batch, name) is not None:
                raise ValueError(f"{name}: found an array, expected None: this batch has x")
        check.array("x", batch.x, (batch.examples, width(feed)), np.float32)
        check.finite("x", batch.x)
    else:
        ids, bag_at = _ids(batch, feed)
        batch = batch._replace(ids=ids, bag_at=bag_at)
    if (weight := batch.weight) is not None:
        check.array("weight", weight, (batch.examples,), np.float32)
        check.finite("weight", weight)
        if (weight < 0).any():
            at = int((weight < 0).argmax())
            raise ValueError(f"weight[{at}]: found {weight[at]}, expected a number of at least 0")
    return batch


def _targets(batch: Batch, feed: Feed) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the classes, and the offsets of each example."""
    target = check.indices("target", batch.target, feed.classes)
    if batch.target_at is None:
        if target.ndim != 1 or len(target) > feed.batch:
            raise ValueError(f"target: found {target.shape}, expected (B,) with B of at most {feed.batch}, feed.batch")
        return target, None
    most = most_targets(feed)
    if target.ndim != 1 or len(target) > most:
        raise ValueError(f"target: found {target.shape}, expected (M,) with M of at most {most}, feed.most_targets")
    target_at = check.bags("target_at", batch.target_at, target.size, "targets")
    if len(target_at) > feed.batch + 1:
        raise ValueError(f"target_at: found {len(target_at)} places, expected at most {feed.batch + 1}, feed.batch + 1")
    return target, target_at


def _ids(batch: Batch, feed: Feed) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the ids and the offsets of the bags; validates values."""
    if batch.ids is None:
        raise ValueError("ids: found None and no x, expected one of them")
    ids = check.indices("ids", batch.ids, feed.rows).reshape(-1)
    bag_at = None if batch.bag_at is None else check.bags("bag_at", batch.bag_at, ids.size)
    if ids.size > feed.most_ids:
        raise ValueError(f"ids: found {ids.size}, expected at most {feed.most_ids}, feed.most_ids")
    if bag_at is not None and len(bag_at) != batch.examples + 1:
        raise ValueError(f"bag_at: found {len(bag_at)} places, expected {batch.examples + 1}: one more than targets")
    if batch.values is not None:
        check.array("values", batch.values, (ids.size,), np.float32)
        check.finite("values", batch.values)
        if bag_at is None:
            raise ValueError("values: found an array, expected None: they are of ids in bags, and bag_at is None")
    return ids, bag_at


def _check_source(batch: Batch, source: Source) -> None:
    """Raises ValueError unless the batch has the inputs that the engine's first part accepts."""
    x, examples = batch.x, batch.examples
    if x is None and source.dense:
        raise ValueError(f"x: found None, expected ({examples}, {source.dense}): the engine has Inputs")
    if x is not None and not source.dense:
        raise ValueError("x: found an array, expected None: the engine has an embedding")
    if x is not None and x.shape[1] != source.dense:
        raise ValueError(f"x: found {x.shape}, expected ({examples}, {source.dense}): the engine has Inputs")
    if batch.ids is not None:
        if source.bags and batch.bag_at is None:
            raise ValueError("bag_at: found None, expected where each bag begins: this embedding averages")
        if not source.bags and batch.bag_at is not None:
            raise ValueError("bag_at: found an array, expected None: this embedding has bags=None")
        ids, each = batch.ids.size, source.per_example
        if not source.bags and ids != examples * each:
            raise ValueError(f"ids: found {ids}, expected {examples * each}: {each} for each of {examples} targets")
    weighted = source.bags == "weighted"
    if weighted != (batch.values is not None):
        found, wanted = ("None", "a number for each id") if weighted else ("an array", "None")
        raise ValueError(f"values: found {found}, expected {wanted}: this embedding has bags={source.bags!r}")
