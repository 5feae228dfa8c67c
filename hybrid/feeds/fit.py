"""What a feed gives, checked once a batch: kernels index with it, so what does not fit is refused here."""

import numpy as np

from .. import check
from . import Batch, Feed, asked


def fitting(feed: Feed, tick: int, embedding=None) -> Batch:
    """feed[tick], its arrays as `Batch` promises them; `embedding`: whose rows the ids are (None: not looked at).

    Raises, naming feed, tick and array, ValueError for arrays of other shapes or of no whole numbers, IndexError for an id
    or a target out of range, and what the feed raises, with a note of the tick.
    """
    found = asked(feed, tick)
    try:
        return _checked(found, feed, embedding)
    except (ValueError, IndexError) as failure:
        raise type(failure)(f"{type(feed).__name__}[{tick}]: {failure}") from None


def _checked(found, feed: Feed, embedding) -> Batch:
    if not all(hasattr(found, name) for name in Batch._fields):
        raise ValueError(f"found {type(found).__name__}, expected a Batch(ids, bag_at, target) of hybrid.feeds")
    target = check.indices("target", found.target, feed.classes)
    ids = check.indices("ids", found.ids, feed.rows).reshape(-1)
    bag_at = None if found.bag_at is None else check.bags("bag_at", found.bag_at, ids.size)
    if target.ndim != 1 or len(target) > feed.batch:
        raise ValueError(f"target: found {target.shape}, expected (B,) with B of at most {feed.batch}, feed.batch")
    if ids.size > feed.most_ids:
        raise ValueError(f"ids: found {ids.size}, expected at most {feed.most_ids}, feed.most_ids")
    if bag_at is not None and len(bag_at) != len(target) + 1:
        raise ValueError(f"bag_at: found {len(bag_at)} places, expected {len(target) + 1}: one more than targets")
    if embedding is not None:
        _check_examples(ids.size, bag_at, len(target), embedding)
    return Batch(ids, bag_at, target)


def _check_examples(ids: int, bag_at: np.ndarray | None, examples: int, embedding) -> None:
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
