"""Epochs of somebody else's batches: where each begins, and what makes it a pure function of (seed, epoch)."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

Source = Iterable[Any] | Callable[[int], Iterable[Any]]


def begun(source: Source, seed: int, epoch: int) -> Iterator[Any]:
    """The batches of an epoch, from the first.

    source  an iterable that can be gone through again; a function of the epoch that returns an iterable; or a
            torch.utils.data.DataLoader, whose generator is set by (seed, epoch) first: one of its own where it has none

    Raises ValueError for an iterator, which can be gone through once only, and for what is neither.
    """
    if callable(source) and not isinstance(source, Iterable):
        return iter(source(epoch))
    if isinstance(source, Iterator):
        raise ValueError(
            f"batches: found {type(source).__name__}, an iterator, which can be gone through once; expected what can be gone"
            " through again: a list, or a function of the epoch that returns an iterator"
        )
    if not isinstance(source, Iterable):
        raise ValueError(
            f"batches: found {type(source).__name__}, expected an iterable of batches, or a function of the epoch that"
            " returns one"
        )
    data = sys.modules.get("torch.utils.data")
    if data and isinstance(source, data.DataLoader):
        _set_generator(source, seed, epoch)
    return iter(source)


def _set_generator(loader: Any, seed: int, epoch: int) -> None:
    """Let all that a DataLoader draws begin anew: the seeds of its workers, and the order.

    These have generators of their own, since how often the first is asked depends on the number of workers.
    """
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
