"""What classifiers share: features -> (rows) -> (hidden layers) -> a readout, trained by fit and partial_fit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import check
from ..engine import Embedding, Engine
from ..engine.inputs import Inputs
from ..engine.trunk.mlp import MLP
from ..readout import Readout
from . import features, training


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
        return training.validated(self, X, y, dtype=np.float32, reset=reset)

    def _weights(self, X: Any, sample_weight: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weight: np.ndarray = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight: all are zero; expected at least one that is not")
        return weight

    def _begin(self, X: Any, counts: np.ndarray) -> None:
        """A new engine, for features as X has them."""
        seed = training.seed(self.random_state)
        source = self._source(X, seed)
        trunk, width = None, source.outputs
        layers = [check.whole("hidden_layers", size, 1) for size in self.hidden_layers]
        if layers:
            sizes, width = [width, *layers], layers[-1]
            trunk = MLP(sizes, activation=self.activation, optimiser="adam", rate=self.trunk_rate, seed=seed)
        readout = self._readout(counts, width, seed)
        threads = training.threads(self.n_jobs)
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
        made = features.feed(self.engine_.embedding, X, target, seed=seed, **settings)
        self.losses_ = training.run(self.engine_, made, self.verbose)
        self._passes += epochs

    def _asked(self, X: Any, outputs: int, ask: Callable[..., Any]) -> list[Any]:
        """ask(**arguments) for X, part by part."""
        check_is_fitted(self)
        X = self._taken(X, reset=False)
        source = self.engine_.embedding
        return [ask(**arguments) for _, arguments in features.questions(source, X, outputs)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
