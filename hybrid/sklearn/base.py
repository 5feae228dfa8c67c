"""Common parts of estimators: argument conversion, a readout by its name, a run over a feed."""

import functools
from typing import Any

from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .. import check, console, readout, settings
from ..engine import Engine
from ..feeds import Feed
from ..machine import available
from ..readout import Readout, registry


def atomic(fit: Any) -> Any:
    """Wraps an estimator method that sets attributes so that all of them are restored if it raises.

    The parameters of an engine that has resumed learning are not restored.
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

    return kept


def validated(estimator: Any, X: Any, y: Any = "no_validation", **more: Any) -> Any:
    """Returns scikit-learn's validate_data, sparse X as CSR; ValueError for a sparse X with indices out of range."""
    if sparse.issparse(X):
        check.sparse("X", X)
    return validate_data(estimator, X, y, accept_sparse="csr", **more)


def threads_of(n_jobs: int | None) -> int:
    """Returns the number of threads: None 1, or that of joblib's context; -1 all. Results do not depend on it."""
    return max(min(int(effective_n_jobs(n_jobs)), available()), 1)


def seed_of(random_state: Any) -> int:
    """Returns a seed of the engine; an instance of RandomState advances by one draw. ValueError for any other type."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def made(kind: str, counts: Any, width: int, *, batch: int, **options: Any) -> Readout:
    """Returns the untrained readout of a kind, with its own defaults for settings that `options` omits."""
    options = settings.defaults(getattr(registry.load(kind), "Options", None)) | options
    return readout.make(kind, counts, width, options, batch=batch, trunk=True)


def run(engine: Engine, feed: Feed, verbose: int) -> list[float]:
    """Trains on all of a feed, from its start; returns the mean loss of each epoch, with batches weighted by their examples.

    With example weights, the loss of a batch is the weighted mean, so the epoch's mean is not exactly the weighted one.

    verbose  above 0: shows progress on stderr
    """
    engine.tick = 0
    sums, examples = [0.0] * feed.epochs, [0] * feed.epochs
    ticks = engine.run(feed)
    for tick in console.bar(len(feed), "fit", "batches", items=ticks) if verbose else ticks:
        if tick.examples:  # a batch of pairs may be empty
            epoch = tick.number // feed.ticks_per_epoch
            sums[epoch] += tick.loss * tick.examples
            examples[epoch] += tick.examples
    return [total / max(count, 1) for total, count in zip(sums, examples, strict=True)]
