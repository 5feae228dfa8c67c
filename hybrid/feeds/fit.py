"""Batches of any feed, checked as they come: kernels index with them, so what does not fit is refused here."""

from typing import Any, Protocol

import numpy as np

from .. import check
from . import Batch, Feed, asked


class Rows(Protocol):
    """What a batch has to suit of an embedding: whether it takes means of bags, else how many ids each example has."""

    mean: bool
    per_example: int


def fitting(feed: Feed, tick: int, embedding: Rows | None = None) -> Batch:
    """feed[tick], with arrays of the shapes and dtypes that `Batch` states.

    embedding  whose rows the ids are; None: it is not checked whether they suit one

    Raises, naming feed, tick and array: ValueError for arrays of other shapes or not of whole numbers, IndexError for an id
    or a target out of range. What the feed itself raises gets a note of the tick.
    """
    batch = asked(feed, tick)
    try:
        return _checked(batch, feed, embedding)
    except (ValueError, IndexError) as failure:
        raise type(failure)(f"{type(feed).__name__}[{tick}]: {failure}") from None


def _checked(batch: Any, feed: Feed, embedding: Rows | None) -> Batch:
    if not all(hasattr(batch, name) for name in Batch._fields):
        raise ValueError(f"found {type(batch).__name__}, expected a Batch(ids, bag_at, target) of hybrid.feeds")
    target = check.indices("target", batch.target, feed.classes)
    ids = check.indices("ids", batch.ids, feed.rows).reshape(-1)
    bag_at = None if batch.bag_at is None else check.bags("bag_at", batch.bag_at, ids.size)
    if target.ndim != 1 or len(target) > feed.batch:
        raise ValueError(f"target: found {target.shape}, expected (B,) with B of at most {feed.batch}, feed.batch")
    if ids.size > feed.most_ids:
        raise ValueError(f"ids: found {ids.size}, expected at most {feed.most_ids}, feed.most_ids")
    if bag_at is not None and len(bag_at) != len(target) + 1:
        raise ValueError(f"bag_at: found {len(bag_at)} places, expected {len(target) + 1}: one more than targets")
    if embedding is not None:
        _check_examples(ids.size, bag_at, len(target), embedding)
    return Batch(ids, bag_at, target)


def _check_examples(ids: int, bag_at: np.ndarray | None, examples: int, embedding: Rows) -> None:
    if embedding.mean != (bag_at is not None):
        wanted = (
            "where each bag begins: this embedding averages"
            if embedding.mean
            else "None: this embedding has mean=False"
        )
        raise ValueError(f"bag_at: found {'None' if bag_at is None else 'an array'}, expected {wanted}")
    if not embedding.mean and ids != examples * embedding.per_example:
        raise ValueError(
            f"ids: found {ids}, expected {examples * embedding.per_example}: {embedding.per_example} for each of "
            f"{examples} targets"
        )
