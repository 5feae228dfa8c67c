"""Batches from an external iterable: a list, a generator, a DataLoader."""

import hashlib
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import check, console
from . import Batch, Epochs, check_sizes
from .arrays import digest

Source = Iterable[Any] | Callable[[int], Iterable[Any]]


class IterableFeed(Epochs):
    """A `Feed` of batches from an iterable.

    batches  a re-iterable, or a function of the epoch that returns an iterable. A torch.utils.data.DataLoader may have any
             number of workers, preferably with multiprocessing_context="spawn": forking a multithreaded process is unsafe. Each
             item is a `Batch`, a dict of its fields, or a pair (inputs, target) or triple with the weights, of NumPy arrays or
             torch tensors. Integer inputs are ids, (B,) or (B, k); other inputs are x, (B, width)
    epochs   number of passes
    seed     seeds the generator of a DataLoader before each epoch; a function of the epoch must seed itself
    rows, classes  their numbers; None: the largest id or class in the first epoch, plus one

    Batches come in order, so a run resumed in the middle of an epoch iterates over the earlier batches and discards them. The
    bytes are the same if the batches of an epoch are reproducible. Tensors become arrays without a copy. Batches of a later
    epoch beyond the length of the first are never requested. Raises ValueError for a single-use iterator, a malformed item, and
    an epoch with fewer batches than the first; IndexError for ids and classes of 2^31 - 1 and more.
    """

    rows: int
    width: int
    counts: np.ndarray

    def __init__(
        self,
        batches: Source,
        *,
        epochs: int = 1,
        seed: int = 0,
        rows: int | None = None,
        classes: int | None = None,
    ):
        check_sizes(seed, epochs=epochs)
        if rows is not None:
            check.whole("rows", rows, 1, check.ID)
        if classes is not None:
            check.classes(classes)
        self._source, self.seed = batches, seed
        ticks = self._count(classes)
        self.classes = check.classes(_at_least("classes", classes, len(self.counts)))
        self.counts = np.concatenate([self.counts, np.zeros(self.classes - len(self.counts), np.int64)])
        self.rows = 0 if self.width else _at_least("rows", rows, self.rows)
        self._under_way: tuple[int, int, Iterator[Any]] = (-1, 0, iter(()))
        super().__init__(epochs, ticks)

    def _count(self, classes: int | None) -> int:
        """Sets sizes, counts and digest by a pass over the batches of epoch 0; returns their number. classes: upper
        limit, checked for each batch; None: no limit."""
        sha256, self.counts = hashlib.sha256(), np.zeros(0, np.int64)
        self.rows = self.batch = self.most_ids = self.most_targets = self.width = ticks = 0
        length = operator.length_hint(self._source) or None
        items = begun(self._source, self.seed, 0)
        for item in console.bar(length, "counting", "batches", items=items, passing=True):
            try:
                given = as_batch(item)
                self.counts = _added(self.counts, given.target, classes)
                if given.ids is not None:
                    check.ids("ids", given.ids, check.ID)
            except (ValueError, IndexError) as error:
                raise type(error)(f"batches[{ticks}]: {error}") from None
            if given.ids is not None and given.ids.size:
                self.rows = max(self.rows, int(given.ids.max()) + 1)
                self.most_ids = max(self.most_ids, given.ids.size)
            self.width = given.x.shape[1] if given.x is not None else self.width
            self.batch = max(self.batch, given.examples)
            self.most_targets = max(self.most_targets, len(given.target))
            sha256.update(digest(*given).encode())
            ticks += 1
        if not ticks:
            raise ValueError("batches: found none, expected one at least")
        self.sha256 = sha256.hexdigest()
        return ticks

    def describe(self) -> dict[str, Any]:
        """Returns the description, with the digest of epoch 0; see `Feed`."""
        return self._described("iterable", self.sha256, "epochs", "seed")

    def _cut(self, epoch: int, tick: int) -> Batch:
        at, following, batches = self._under_way
        if at != epoch or tick < following:
            following, batches = 0, begun(self._source, self.seed, epoch)
        for number in range(following, tick + 1):
            item = next(batches, None)
            if item is None:
                raise ValueError(f"epoch {epoch} has {number} batches, expected {self.ticks_per_epoch} as the first")
        self._under_way = epoch, tick + 1, batches
        return as_batch(item)


def _added(counts: np.ndarray, target: np.ndarray, classes: int | None) -> np.ndarray:
    if target.dtype.kind not in "iu" or (target.size and target.min() < 0):
        raise ValueError(f"target: found {target.dtype}, or some below 0; expected whole numbers from 0")
    check.ids("target", target, check.ID)  # before memory is allocated for them
    _at_least("classes", classes, int(target.max(initial=0)) + 1)
    more = np.bincount(target.reshape(-1), minlength=len(counts))
    more[: len(counts)] += counts
    return more


def _at_least(name: str, given: int | None, needed: int) -> int:
    if given is not None and given < needed:
        raise ValueError(f"{name}: found {given}, expected at least {needed}: the first epoch has {needed - 1}")
    return given or needed


def begun(source: Source, seed: int, epoch: int) -> Iterator[Any]:
    """Returns an iterator over the batches of an epoch, from the first; source: `batches` of IterableFeed. The
    generator of a DataLoader, a new one if it has none, is first seeded by (seed, epoch)."""
    if callable(source) and not isinstance(source, Iterable):
        return iter(source(epoch))
    if isinstance(source, Iterator):
        raise ValueError(
            f"batches: found {type(source).__name__}, an iterator, which ends after one pass; expected a source that can be"
            " iterated again: a list, or a function of the epoch that returns an iterator"
        )
    if not isinstance(source, Iterable):
        raise ValueError(
            f"batches: found {type(source).__name__}, expected an iterable of batches, or a function of the epoch"
        )
    data = sys.modules.get("torch.utils.data")
    if data and isinstance(source, data.DataLoader):
        _set_generator(source, seed, epoch)
    return iter(source)


def _set_generator(loader: Any, seed: int, epoch: int) -> None:
    """Reseeds a DataLoader's random sources, each with its own generator: draws of the first depend on the workers."""
    import torch

    loader.generator = loader.generator or torch.Generator()
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    drawn = [loader.generator]
    for part in (sampler, loader.batch_sampler):
        if hasattr(part, "generator"):
            if part.generator in (None, loader.generator):
                part.generator = torch.Generator()
            drawn.append(part.generator)
    for number, generator in enumerate(drawn):
        generator.manual_seed(int(np.random.SeedSequence([seed, epoch, number]).generate_state(1, np.uint64)[0] >> 1))


def as_batch(item: Any) -> Batch:
    """Converts an item of an iterable to a Batch; ValueError for any other type. The engine validates the ids."""
    if isinstance(item, Batch):
        return item
    if isinstance(item, Mapping):
        if item.keys() - set(Batch._fields) or "target" not in item:
            raise ValueError(f"found a dict of {', '.join(map(str, item))}, expected target and any of {Batch._fields}")
        fields = {name: None if item.get(name) is None else _array(item[name]) for name in Batch._fields}
        return Batch(**fields)  # type: ignore[arg-type]
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise ValueError(
            f"found {type(item).__name__}, expected a Batch of hybrid.feeds, a pair (inputs, target), a triple with weights,"
            " or a dict of a Batch's fields"
        )
    given, target, *weights = map(_array, item)
    weight = weights[0].astype(np.float32, copy=False) if weights else None
    if given.dtype.kind == "f" and given.ndim == 2:
        return Batch(None, None, target, weight, x=np.ascontiguousarray(given, np.float32))
    if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or target.dtype.kind not in "iu":
        raise ValueError(
            f"found inputs {given.dtype} {given.shape} and target {target.dtype} {target.shape}, expected ids (B,) or (B, k),"
            " or numbers (B, width), and whole numbers (B,)"
        )
    return Batch(given.reshape(-1), None, target, weight)


def _array(part: Any) -> np.ndarray:
    """Converts an array or a tensor on the CPU without a copy; ValueError for any other type."""
    check.unmasked("batch", part)
    try:
        return np.asarray(part)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"found {type(part).__name__}, expected an array or a tensor on the CPU ({error})") from None
