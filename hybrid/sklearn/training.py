"""What all estimators do: their arguments as the engine takes them, and a run over a feed."""

from collections.abc import Mapping
from typing import Any

from .. import console, readout, settings
from ..engine import Engine
from ..feeds import Feed
from ..readout import Readout, registry


def threads(n_jobs: int | None) -> int:
    """How many threads: None 1, or as many as joblib's context says; -1 all. Results do not depend on it."""
    from joblib import effective_n_jobs

    from cpu.threads import available

    return max(min(int(effective_n_jobs(n_jobs)), available()), 1)


def seed(random_state: Any) -> int:
    """A seed of the engine's; an instance of RandomState goes on by one draw. ValueError for what is no random state."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def made(kind: str, counts: Any, width: int, *, batch: int, trunk: bool, **options: Any) -> Readout:
    """The untrained readout of a kind, with its own defaults where `options` does not say otherwise."""
    defaults: Mapping[str, Any] = settings.defaults(getattr(registry.load(kind), "Options", None))
    return readout.make(kind, counts, width, {**defaults, **options}, batch=batch, trunk=trunk)


def run(engine: Engine, feed: Feed, verbose: int) -> list[float]:
    """Train on all of a feed, wherever the engine stood; returns the loss of each epoch: the mean of the losses of its
    batches, each by how many examples it has. Where examples have weights, the loss of a batch is the weighted mean, but
    the batches still count by examples: then it is not exactly the weighted mean over the epoch.

    verbose  above 0: shows how far it is on stderr
    """
    engine.go_on(0, {})
    sums, examples = [0.0] * feed.epochs, [0] * feed.epochs
    ticks = engine.run(feed)
    for tick in console.bar(len(feed), "fit", "batches", items=ticks) if verbose else ticks:
        if tick.examples:  # a batch of pairs may have none
            epoch = tick.number // feed.ticks_per_epoch
            sums[epoch] += tick.loss * tick.examples
            examples[epoch] += tick.examples
    return [total / max(count, 1) for total, count in zip(sums, examples, strict=True)]
