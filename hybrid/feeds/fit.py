"""Validation of the batches of any feed: kernels index with them, so an invalid batch is rejected here."""

from typing import Any, Protocol

import numpy as np

from .. import check
from . import Batch, Feed, asked, most_targets, width


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
                "target_at: found an array, expected None: this readout learns from one an example; on the CPU it takes more"
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
