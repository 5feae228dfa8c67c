"""Common parts of estimators: engine-based classifiers, argument conversion, a run over a feed."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import check, console, readout, settings
from ..engine import Embedding, Engine
from ..engine.embedding import Inputs
from ..engine.route import Pipeline
from ..feeds import Batch, Feed
from ..feeds.arrays import ArrayFeed
from ..machine import available
from ..optimisers import ROWS, Adam, named
from ..readout import Readout, registry
from ..schedule.rates import RateSchedule
from ..trunk.mlp import MLP

NUMBERS = 2**22  # of features or scores per query


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


@dataclass(eq=False, repr=False, kw_only=True)
class Learner(BaseEstimator):
    """A classifier based on an engine: features -> (rows) -> (hidden layers) -> a readout. The fields are its parameters.

    A subclass has these methods:

    _read(X, y, classes, *, first, partial)  validated X and y, as features and targets of a feed; classes: the known ones,
                                             None: all of y. `first` sets classes_, and in a `partial` fit needs them
    _readout(counts, width, seed)            the untrained readout
    """

    hidden_layers: Sequence[int] = (100,)
    activation: str = "relu"
    width: int | None = 100
    epochs: int = 20
    batch: int = 32
    rate: float = 0.1
    trunk_rate: float | None = None
    optimiser: str = "adagrad"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learns from examples; sample_weight multiplies the loss of each, and thereby its update."""
        return self._learn(X, y, None, sample_weight, first=True)

    @atomic
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learns from one pass over the examples, at the full rate.

        classes  all classes; needed in the first call, except for an indicator of labels, whose columns they are
        """
        first = not hasattr(self, "engine_")
        known = None if classes is None else np.unique(classes)
        if not first:
            if known is not None and not np.array_equal(known, self.classes_):
                raise ValueError(f"classes: found others than in the first partial_fit, expected {self.classes_!r}")
            known = self.classes_
        return self._learn(X, y, known, sample_weight, first=first, partial=True)

    def _learn(self, X: Any, y: Any, classes: Any, weight: Any, *, first: bool, partial: bool = False) -> Any:
        """Learns from the examples, in one pass if `partial`."""
        X, target = self._read(X, y, classes, first=first, partial=partial)
        if weight is not None:
            weight = _check_sample_weight(weight, X, dtype=np.float32, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight: all are zero; expected at least one that is not")
        if first:
            self._begin(X, np.bincount(getattr(target, "indices", target), minlength=len(self.classes_)))
        self.engine_.schedule = RateSchedule("constant" if partial else "linear")
        epochs = 1 if partial else self.epochs
        settings = {"classes": len(self.classes_), "weight": weight, "batch": self.batch, "epochs": epochs}
        # Each pass over any examples has its own seed, derived from the seed and the number of earlier passes.
        seed = int(np.random.SeedSequence([self._seed, self._passes]).generate_state(1)[0])
        made = feed(self.engine_.embedding, X, target, seed=seed, **settings)
        self.losses_ = run(self.engine_, made, self.verbose)
        self._passes += epochs
        return self

    def _begin(self, X: Any, counts: np.ndarray) -> None:
        """Creates a new engine, for features of the form of X."""
        seed = seed_of(self.random_state)
        source: Embedding | Inputs = Inputs(X.shape[1])
        if self.width is not None and sparse.issparse(X):
            rows = named(self.optimiser, ROWS, rate=self.rate)
            source = Embedding(X.shape[1], self.width, bags="weighted", optimiser=rows, seed=seed)
        trunk, width = None, source.outputs
        layers = [check.whole("hidden_layers", size, 1) for size in self.hidden_layers]
        if layers:
            sizes, width = [width, *layers], layers[-1]
            trunk = MLP(sizes, self.activation, optimiser=Adam(self.trunk_rate), seed=seed)
        readout, threads = self._readout(counts, width, seed), threads_of(self.n_jobs)
        self.engine_ = Engine(source, trunk, readout, device="cpu", threads=threads, pipeline=Pipeline(overlap=False))
        self._seed, self._passes = seed, 0

    def _answers(self, X: Any, outputs: int, ask: Callable[..., Any]) -> list[Any]:
        """Returns ask(**question) for X, part by part; outputs: numbers of an answer's row."""
        X = validated(self, X, dtype=np.float32, reset=False)
        return [ask(**question) for question in questions(self.engine_.embedding, X, outputs)]

    def _log_probs(self, X: Any) -> Any:
        """Returns the log-probabilities of all classes, (n, V) float32."""
        check_is_fitted(self)
        return np.concatenate(self._answers(X, len(self.classes_), self.engine_.scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
    engine.go_on(0, {})
    sums, examples = [0.0] * feed.epochs, [0] * feed.epochs
    ticks = engine.run(feed)
    for tick in console.bar(len(feed), "fit", "batches", items=ticks) if verbose else ticks:
        if tick.examples:  # a batch of pairs may be empty
            epoch = tick.number // feed.ticks_per_epoch
            sums[epoch] += tick.loss * tick.examples
            examples[epoch] += tick.examples
    return [total / max(count, 1) for total, count in zip(sums, examples, strict=True)]


class SparseFeed(ArrayFeed):
    """A feed of a sparse X, made dense batch by batch: for an engine with Inputs. Arguments of ArrayFeed."""

    def __init__(self, X: Any, target: Any, **settings: Any):
        super().__init__(X, target, **settings)
        self.width, self.rows, self.most_ids = X.shape[1], 0, 0

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        return super().describe() | {"kind": "sparse"}

    def _cut(self, epoch: int, tick: int) -> Batch:
        batch = super()._cut(epoch, tick)
        x = sparse.csr_array((batch.values, batch.ids, batch.bag_at), (batch.examples, self.width)).toarray()
        return batch._replace(ids=None, bag_at=None, values=None, x=x)


def feed(source: Embedding | Inputs, X: Any, target: Any, **settings: Any) -> ArrayFeed:
    """Returns a feed for an engine that starts with `source`; X dense or CSR, float32; target and settings as in ArrayFeed."""
    if source.dense:
        return (SparseFeed if sparse.issparse(X) else ArrayFeed)(X, target, **settings)
    return ArrayFeed(sparse.csr_array(X), target, **settings)


def questions(source: Embedding | Inputs, X: Any, outputs: int) -> Iterator[dict[str, Any]]:
    """Yields X part by part, as arguments of Engine.hidden, .best and .scores; outputs: numbers of an answer's row."""
    rows = max(NUMBERS // max(X.shape[1] if source.dense else 1, outputs), 1)
    for first in range(0, X.shape[0], rows):
        part = X[first : first + rows]
        if source.dense:
            yield {"x": np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, np.float32)}
        else:
            entries = sparse.csr_array(part)
            yield {"ids": entries.indices, "bag_at": entries.indptr, "values": entries.data.astype(np.float32)}
