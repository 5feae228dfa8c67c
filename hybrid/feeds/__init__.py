"""What feeds are: sequences of batches, each a pure function of the feed's arguments and the tick.

So a run can stop at any tick and go on with the same bytes, and a feed has no state to save. A feed keeps what it
computed last (an epoch's order, a block of pairs) only to be quick: it answers the same in any order of asking.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np


class Batch(NamedTuple):
    """B examples. The arrays may be views of the feed's own, so they are read-only.

    ids     (N,) int32, rows of the input table
    bag_at  (B + 1,) int64: example b is the mean of the rows ids[bag_at[b] : bag_at[b + 1]];
            None: every example has N / B ids, in order (a context to concatenate, or one id)
    target  (B,) int32, the classes to predict
    """

    ids: np.ndarray
    bag_at: np.ndarray | None
    target: np.ndarray


class Feed(Protocol):
    """The batches of all epochs: len(feed) = epochs * ticks_per_epoch, feed[tick] -> Batch.

    rows, classes    how many input ids and classes there are
    counts           (classes,) int64, how often each class occurs in the training data
    batch, most_ids  the most examples and the most ids that a batch can have; a batch may have none
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
        """Facts that JSON can say: kind, arguments and the sha256 of the data. Equal facts give equal batches."""


def asked(feed, tick: int) -> Any:
    """feed[tick]; what the feed raises carries a note of the tick."""
    try:
        return feed[tick]
    except StopIteration as failure:  # which would end the generator that asks, as if the feed had ended
        raise RuntimeError(f"the feed raised StopIteration at tick {tick}") from failure
    except BaseException as failure:
        failure.add_note(f"in the feed, at tick {tick}")
        raise
