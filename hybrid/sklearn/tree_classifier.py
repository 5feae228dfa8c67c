"""A classifier for many classes, whose output layer is a tree, a full or a sampled softmax."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import check, settings
from ..engine import Embedding, Engine
from ..engine.embedding import Inputs
from ..engine.route import Pipeline
from ..feeds import Batch
from ..feeds.arrays import ArrayFeed
from ..optimisers import ROWS, Adam, named
from ..readout import Readout, registry
from ..schedule.rates import RateSchedule
from ..trunk.mlp import MLP
from . import base

COMMON = ("rate", "seed", "readout_optimiser", "biases")  # options of every readout
NUMBERS = 2**22  # of features or scores per query


@dataclass(eq=False, repr=False)
class TreeClassifier(ClassifierMixin, BaseEstimator):
    """A classifier: features -> hidden layers, if any -> a readout, such as a tree, in which a class costs log V instead of V.

    readout         "tree", "full", "sampled", or another installed kind
    hidden_layers   widths of an MLP's layers; (): a linear model
    activation      of the layers: "relu", "tanh", "logistic", ...
    width           for sparse X: every feature has a row of so many numbers, and an example is their sum weighted by its
                    values, as in fastText. None: the numbers of X themselves are the inputs, made dense batch by batch
    epochs, batch   passes over the examples (20), and examples (32) per update of the hidden layers
    rate            step size of readout and rows
    trunk_rate      step size of the hidden layers, which learn by Adam; None: 0.001
    optimiser       of readout and rows: "adagrad", which suits features of any scale, "row-adagrad" or "sgd"
    options         others of the readout, as `hybrid train` names them: {"tree": "balanced"}, {"negatives": 100}, ...
    random_state    of the initial weights and of the order of examples
    n_jobs          threads; results do not depend on it
    verbose         1: progress on stderr

    X is dense or sparse. It is not standardised: use a StandardScaler before hidden layers if features differ in scale. Without
    layers Adagrad makes their scale matter little. After `fit`:

    classes_  (V,) the classes
    losses_   mean loss of each epoch, in nats; sample_weight counts within a batch only, not between batches
    engine_   the Engine

    ValueError for fewer than two classes, and for unsupported readout options; a fitted model then stays unchanged.
    """

    readout: str = "tree"
    _: KW_ONLY
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
    options: Mapping[str, Any] | None = None

    @base.atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeClassifier":
        """Learns from examples; sample_weight multiplies the loss of each, and thereby its update."""
        return self._learn(X, y, None, sample_weight, first=True)

    @base.atomic
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "TreeClassifier":
        """Learns from one pass over the examples, at the full rate.

        classes  all classes; needed in the first call
        """
        first = not hasattr(self, "engine_")
        known = None if classes is None else np.unique(classes)
        if first and classes is None:
            raise ValueError("classes: found None in the first partial_fit, expected all classes there will be")
        if not first:
            if known is not None and not np.array_equal(known, self.classes_):
                raise ValueError(f"classes: found others than in the first partial_fit, expected {self.classes_!r}")
            known = self.classes_
        return self._learn(X, y, known, sample_weight, first=first, partial=True)

    def predict(self, X: Any) -> np.ndarray:
        """Returns the most likely class of each example, (n,); a tree does not compute all probabilities for it."""
        check_is_fitted(self)
        places = self._answers(X, 1, lambda **question: self.engine_.best(k=1, **question)[0][:, 0])
        return self.classes_[places]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Returns the log-probabilities of all classes, (n, V) float32."""
        check_is_fitted(self)
        return self._answers(X, len(self.classes_), self.engine_.scores)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns the probabilities of all classes, (n, V) float64."""
        probs: np.ndarray = np.exp(self.predict_log_proba(X), dtype=np.float64)
        probs /= probs.sum(axis=1, keepdims=True)  # removes the float32 rounding error
        return probs

    def _learn(
        self, X: Any, y: Any, classes: Any, weight: Any, *, first: bool, partial: bool = False
    ) -> "TreeClassifier":
        """Learns from the examples, in one pass if `partial`."""
        X, target = self._read(X, y, classes, first)
        if weight is not None:
            weight = _check_sample_weight(weight, X, dtype=np.float32, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight: all are zero; expected at least one that is not")
        if first:
            self._begin(X, np.bincount(target, minlength=len(self.classes_)))
        self.engine_.schedule = RateSchedule("constant" if partial else "linear")
        epochs = 1 if partial else self.epochs
        settings = {"classes": len(self.classes_), "weight": weight, "batch": self.batch, "epochs": epochs}
        # Each pass over any examples has its own seed, derived from the seed and the number of earlier passes.
        seed = int(np.random.SeedSequence([self._seed, self._passes]).generate_state(1)[0])
        made = feed(self.engine_.embedding, X, target, seed=seed, **settings)
        self.losses_ = base.run(self.engine_, made, self.verbose)
        self._passes += epochs
        return self

    def _read(self, X: Any, y: Any, classes: Any, first: bool) -> tuple[Any, np.ndarray]:
        """Returns validated X, and y as places in classes_, which `first` sets: to `classes`, None: all of y."""
        X, y = base.validated(self, X, y, dtype=np.float32, reset=first)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y) if classes is None else classes
        place = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        new = self.classes_[place] != y
        if new.any():
            at = int(new.argmax())
            raise ValueError(f"y[{at}]: found {y[at]!r}, expected one of classes_: {self.classes_!r}")
        if len(self.classes_) < 2:
            raise ValueError(f"y: found one class, {self.classes_[0]!r}; expected at least 2 classes")
        return X, place

    def _begin(self, X: Any, counts: np.ndarray) -> None:
        """Creates a new engine, for features of the form of X."""
        seed = base.seed_of(self.random_state)
        source: Embedding | Inputs = Inputs(X.shape[1])
        if self.width is not None and sparse.issparse(X):
            rows = named(self.optimiser, ROWS, rate=self.rate)
            source = Embedding(X.shape[1], self.width, bags="weighted", optimiser=rows, seed=seed)
        trunk, width = None, source.outputs
        layers = [check.whole("hidden_layers", size, 1) for size in self.hidden_layers]
        if layers:
            sizes, width = [width, *layers], layers[-1]
            trunk = MLP(sizes, self.activation, optimiser=Adam(self.trunk_rate), seed=seed)
        readout, threads = self._readout(counts, width, seed), base.threads_of(self.n_jobs)
        self.engine_ = Engine(source, trunk, readout, device="cpu", threads=threads, pipeline=Pipeline(overlap=False))
        self._seed, self._passes = seed, 0

    def _readout(self, counts: np.ndarray, width: int, seed: int) -> Readout:
        own = self.options or {}
        taken = {*COMMON, *settings.fields(getattr(registry.load(self.readout), "Options", None))}
        for name in own:
            if name not in taken:
                found = f"{name!r}, which a {self.readout} readout does not take"
                raise ValueError(f"options: found {found}; expected some of {', '.join(sorted(taken))}")
        options = {"rate": self.rate, "seed": seed, "readout_optimiser": self.optimiser, "biases": True, **own}
        return base.made(self.readout, counts, width, batch=self.batch, **options)

    def _answers(self, X: Any, outputs: int, ask: Callable[..., np.ndarray]) -> np.ndarray:
        """Returns ask(**question) for X, part by part; outputs: numbers of an answer's row."""
        X = base.validated(self, X, dtype=np.float32, reset=False)
        return np.concatenate([ask(**question) for question in questions(self.engine_.embedding, X, outputs)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
