"""What all estimators do: their arguments as the engine takes them, and a run over a feed."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from .. import check, console, readout, settings
from ..engine import Engine
from ..feeds import Feed
from ..processors import available
from ..readout import Readout, registry

COMMON = ("rate", "seed", "readout_optimiser", "biases")  # options of every readout
Method = TypeVar("Method", bound=Callable[..., Any])


def whole(fit: Method) -> Method:
    """A method of an estimator that sets its attributes, made to leave all of them as they were where it raises.

    An engine that has begun to learn further is not brought back.
    """

    @functools.wraps(fit)
    def kept(self: Any, *given: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *given, **named)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, kept)


def validated(estimator: Any, X: Any, y: Any = "no_validation", **more: Any) -> Any:
    """What scikit-learn's validate_data gives, sparse X as CSR; ValueError for a sparse X whose indices point elsewhere."""
    from scipy.sparse import issparse
    from sklearn.utils.validation import validate_data

    if issparse(X):
        check.sparse("X", X)
    return validate_data(estimator, X, y, accept_sparse="csr", **more)


def threads(n_jobs: int | None) -> int:
    """How many threads: None 1, or as many as joblib's context says; -1 all. Results do not depend on it."""
    from joblib import effective_n_jobs

    return max(min(int(effective_n_jobs(n_jobs)), available()), 1)


def seed(random_state: Any) -> int:
    """A seed of the engine's; an instance of RandomState goes on by one draw. ValueError for what is no random state."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """ValueError for an option that a readout of this kind does not take."""
    taken = {*COMMON, *settings.fields(getattr(registry.load(kind), "Options", None))}
    for name in options:
        if name not in taken:
            raise ValueError(
                f"options: found {name!r}, which a {kind} readout does not take; expected some of "
                f"{', '.join(sorted(taken))}"
            )


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
