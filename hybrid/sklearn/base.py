"""What all estimators do: their arguments as the engine takes them, and a run over a feed."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import check, console, readout, settings
from ..engine import Embedding, Engine
from ..engine.embedding import Inputs
from ..feeds import Batch, Feed
from ..feeds.arrays import ArrayFeed
from ..machine import available
from ..readout import Readout, registry
from ..trunk.mlp import MLP

# Features as an engine takes them: dense numbers, or rows that are summed with the values of a sparse X.

NUMBERS = 2**22  # of features or scores that a question takes at a time


class SparseFeed(ArrayFeed):
    """Examples of a sparse X whose numbers are made dense batch by batch: for an engine with Inputs. Arguments of ArrayFeed."""

    def __init__(self, X: Any, target: Any, **settings: Any):
        super().__init__(X, target, **settings)
        self.width, self.rows, self.most_ids = X.shape[1], 0, 0

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        return super().describe() | {"kind": "sparse"}

    def _cut(self, epoch: int, tick: int) -> Batch:
        batch = super()._cut(epoch, tick)
        x = sparse.csr_array((batch.values, batch.ids, batch.bag_at), (batch.examples, self.width)).toarray()
        return batch._replace(ids=None, bag_at=None, values=None, x=x)


def feed(source: Embedding | Inputs, X: Any, target: Any, **settings: Any) -> ArrayFeed:
    """Examples for an engine that begins with `source`; X dense or CSR, float32; target and settings as of ArrayFeed."""
    if source.dense:
        return (SparseFeed if sparse.issparse(X) else ArrayFeed)(X, target, **settings)
    return ArrayFeed(sparse.csr_array(X), target, **settings)


def questions(source: Embedding | Inputs, X: Any, outputs: int) -> Iterator[tuple[slice, dict[str, Any]]]:
    """Parts of X, each with the arguments of Engine.hidden, .best and .scores for it; outputs: numbers of an answer's row."""
    rows = max(NUMBERS // max(X.shape[1] if source.dense else 1, outputs), 1)
    for first in range(0, X.shape[0], rows):
        part = slice(first, first + rows)
        yield part, _arguments(source, X[part])


def _arguments(source: Embedding | Inputs, X: Any) -> dict[str, Any]:
    if source.dense:
        return {"x": np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float32)}
    entries = sparse.csr_array(X)
    return {"ids": entries.indices, "bag_at": entries.indptr, "values": entries.data.astype(np.float32)}


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


def threads_of(n_jobs: int | None) -> int:
    """How many threads: None 1, or as many as joblib's context says; -1 all. Results do not depend on it."""
    from joblib import effective_n_jobs

    return max(min(int(effective_n_jobs(n_jobs)), available()), 1)


def seed_of(random_state: Any) -> int:
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


# What classifiers share: features -> (rows) -> (hidden layers) -> a readout, trained by fit and partial_fit.


class Learner(BaseEstimator):
    """An engine under the methods of an estimator. A subclass has the parameters, by __init__, and these methods:

    _readout(counts, width, seed)  the untrained readout
    """

    hidden_layers: Sequence[int]
    activation: str
    width: int | None
    epochs: int
    batch: int
    rate: float
    trunk_rate: float | None
    optimiser: str
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    verbose: int
    engine_: Engine

    def _readout(self, counts: np.ndarray, width: int, seed: int) -> Readout:
        raise NotImplementedError

    def _taken(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """X as float32, dense or CSR; with y, one value an example, where it is given."""
        return validated(self, X, y, dtype=np.float32, reset=reset)

    def _weights(self, X: Any, sample_weight: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weight: np.ndarray = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight: all are zero; expected at least one that is not")
        return weight

    def _begin(self, X: Any, counts: np.ndarray) -> None:
        """A new engine, for features as X has them."""
        seed = seed_of(self.random_state)
        source = self._source(X, seed)
        trunk, width = None, source.outputs
        layers = [check.whole("hidden_layers", size, 1) for size in self.hidden_layers]
        if layers:
            sizes, width = [width, *layers], layers[-1]
            trunk = MLP(sizes, activation=self.activation, optimiser="adam", rate=self.trunk_rate, seed=seed)
        readout = self._readout(counts, width, seed)
        threads = threads_of(self.n_jobs)
        self.engine_ = Engine(source, trunk, readout, device="cpu", threads=threads, overlap=False)
        self._seed, self._passes = seed, 0

    def _source(self, X: Any, seed: int) -> Embedding | Inputs:
        if self.width is None or not sparse.issparse(X):
            return Inputs(X.shape[1])
        settings: dict[str, Any] = {"rate": self.rate, "optimiser": self.optimiser, "seed": seed}
        return Embedding(X.shape[1], self.width, mean=True, weighted=True, **settings)

    def _learn(self, X: Any, target: Any, classes: int, weight: np.ndarray | None, epochs: int) -> None:
        """Go through the examples so many times; the order of each pass is drawn anew."""
        settings = {"classes": classes, "weight": weight, "batch": self.batch, "epochs": epochs}
        # Each pass over any examples is drawn from a seed of its own, that of all before it and their number.
        seed = int(np.random.SeedSequence([self._seed, self._passes]).generate_state(1)[0])
        made = feed(self.engine_.embedding, X, target, seed=seed, **settings)
        self.losses_ = run(self.engine_, made, self.verbose)
        self._passes += epochs

    def _asked(self, X: Any, outputs: int, ask: Callable[..., Any]) -> list[Any]:
        """ask(**arguments) for X, part by part."""
        check_is_fitted(self)
        X = self._taken(X, reset=False)
        source = self.engine_.embedding
        return [ask(**arguments) for _, arguments in questions(source, X, outputs)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
