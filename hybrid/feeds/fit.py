"""Batches of any feed, checked as they come: kernels index with them, so what does not fit is refused here."""

from typing import Any, Protocol

import numpy as np

from .. import check
from . import Batch, Feed, asked, most_targets, width


class Source(Protocol):
    """What a batch has to suit of an embedding: whether it takes bags, and of weighted ids, else how many ids each example
    has; or, of hybrid.engine.embedding.Inputs, how many numbers of x.
    """

    mean: bool
    weighted: bool
    per_example: int
    dense: int


def fitting(feed: Feed, tick: int, source: Source | None = None, *, several: bool = True, whole: int = 1) -> Batch:
    """feed[tick], with arrays of the shapes and dtypes that `Batch` states.

    source   what the batch is given to; None: it is not checked whether it suits one
    several  whether an example may have several targets
    whole    the number of examples is a multiple of this one

    Raises, naming feed, tick and array: ValueError for arrays of other shapes or dtypes, for weights below 0 and for numbers
    that are not finite, IndexError for an id or a target out of range. What the feed itself raises gets a note of the tick.
    """
    batch = asked(feed, tick)
    try:
        made = _checked(batch, feed, source)
        _check_examples(made, several, whole)
        return made
    except (ValueError, IndexError) as failure:
        raise type(failure)(f"{type(feed).__name__}[{tick}]: {failure}") from None


def _checked(batch: Any, feed: Feed, source: Source | None) -> Batch:
    if not all(hasattr(batch, name) for name in ("ids", "bag_at", "target")):
        raise ValueError(f"found {type(batch).__name__}, expected a Batch(ids, bag_at, target) of hybrid.feeds")
    target, target_at = _targets(batch, feed)
    examples = len(target) if target_at is None else len(target_at) - 1
    x = getattr(batch, "x", None)
    if x is not None:
        _check_x(batch, feed, x, examples)
        ids = bag_at = values = None
    else:
        ids, bag_at, values = _ids(batch, feed, examples)
    made = Batch(ids, bag_at, target, _weight(batch, examples), values, x, target_at)
    if source is not None:
        _check_source(made, source)
    return made


def _check_examples(batch: Batch, several: bool, whole: int) -> None:
    if batch.target_at is not None and not several:
        raise ValueError(
            "target_at: found an array, expected None: this readout learns from one target an example where it computes; "
            "one on the CPU takes several"
        )
    if batch.examples % whole:
        raise ValueError(f"found {batch.examples} examples, expected a multiple of {whole}, the sequence of the trunk")


def _targets(batch: Any, feed: Feed) -> tuple[np.ndarray, np.ndarray | None]:
    """The classes, and where those of each example begin."""
    target = check.indices("target", batch.target, feed.classes)
    target_at = getattr(batch, "target_at", None)
    if target_at is None:
        if target.ndim != 1 or len(target) > feed.batch:
            raise ValueError(f"target: found {target.shape}, expected (B,) with B of at most {feed.batch}, feed.batch")
        return target, None
    most = most_targets(feed)
    if target.ndim != 1 or len(target) > most:
        raise ValueError(f"target: found {target.shape}, expected (M,) with M of at most {most}, feed.most_targets")
    target_at = check.bags("target_at", target_at, target.size, "targets")
    if len(target_at) > feed.batch + 1:
        raise ValueError(f"target_at: found {len(target_at)} places, expected at most {feed.batch + 1}, feed.batch + 1")
    return target, target_at


def _ids(batch: Any, feed: Feed, examples: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The ids, where bags begin, and by what each row is multiplied."""
    if batch.ids is None:
        raise ValueError("ids: found None and no x, expected one of them")
    ids = check.indices("ids", batch.ids, feed.rows).reshape(-1)
    bag_at = None if batch.bag_at is None else check.bags("bag_at", batch.bag_at, ids.size)
    if ids.size > feed.most_ids:
        raise ValueError(f"ids: found {ids.size}, expected at most {feed.most_ids}, feed.most_ids")
    if bag_at is not None and len(bag_at) != examples + 1:
        raise ValueError(f"bag_at: found {len(bag_at)} places, expected {examples + 1}: one more than targets")
    values = getattr(batch, "values", None)
    if values is not None:
        check.array("values", values, (ids.size,), np.float32)
        check.finite("values", values)
        if bag_at is None:
            raise ValueError("values: found an array, expected None: they are of ids in bags, and bag_at is None")
    return ids, bag_at, values


def _check_x(batch: Any, feed: Feed, x: Any, examples: int) -> None:
    for name in ("ids", "bag_at", "values"):
        if getattr(batch, name, None) is not None:
            raise ValueError(f"{name}: found an array, expected None: this batch has x")
    check.array("x", x, (examples, width(feed)), np.float32)
    check.finite("x", x)


def _weight(batch: Any, examples: int) -> np.ndarray | None:
    weight: np.ndarray | None = getattr(batch, "weight", None)
    if weight is not None:
        check.array("weight", weight, (examples,), np.float32)
        check.finite("weight", weight)
        if (weight < 0).any():
            at = int((weight < 0).argmax())
            raise ValueError(f"weight[{at}]: found {weight[at]}, expected a number of at least 0")
    return weight


def _check_source(batch: Batch, source: Source) -> None:
    """ValueError unless the inputs of a batch are those that the engine's first part takes."""
    x, examples, given = batch.x, batch.examples, "an array" if batch.values is not None else "None"
    if (x is not None) != bool(source.dense):
        found = "found None" if x is None else "found an array"
        wanted = (
            f"({examples}, {source.dense}): the engine has Inputs" if x is None else "None: the engine has an embedding"
        )
        raise ValueError(f"x: {found}, expected {wanted}")
    if x is not None and x.shape[1] != source.dense:
        raise ValueError(f"x: found {x.shape}, expected ({examples}, {source.dense}): the engine has Inputs")
    if batch.ids is not None:
        _check_bags(batch.ids.size, batch.bag_at, examples, source)
    if source.weighted != (batch.values is not None):
        wanted = "a number for each id" if source.weighted else "None"
        raise ValueError(f"values: found {given}, expected {wanted}: this embedding has weighted={source.weighted}")


def _check_bags(ids: int, bag_at: np.ndarray | None, examples: int, source: Source) -> None:
    if source.mean != (bag_at is not None):
        wanted = (
            "where each bag begins: this embedding averages" if source.mean else "None: this embedding has mean=False"
        )
        raise ValueError(f"bag_at: found {'None' if bag_at is None else 'an array'}, expected {wanted}")
    if not source.mean and ids != examples * source.per_example:
        raise ValueError(
            f"ids: found {ids}, expected {examples * source.per_example}: {source.per_example} for each of "
            f"{examples} targets"
        )
