"""A classifier for many classes, whose output layer is a tree, a full or a sampled softmax."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..readout import Readout
from . import base
from .base import Learner


class TreeClassifier(ClassifierMixin, Learner):
    """Features -> hidden layers, if any -> a readout: hierarchical softmax, where a class costs log V and not V.

    readout         "tree", "full", "sampled", or another kind that is installed
    hidden_layers   widths of an MLP's layers; (): a linear model
    activation      of the layers: "relu", "tanh", "logistic", ...
    width           of sparse X: every feature has a row of so many numbers, and an example is the sum of them times its values,
                    as in fastText. None: the numbers of X themselves are the inputs, made dense batch by batch
    epochs, batch   passes over the examples (20), and how many (32) are between two moves of the hidden layers
    rate            step of readout and rows
    trunk_rate      step of the hidden layers, which learn by Adam; None: 0.001
    optimiser       of readout and rows: "adagrad", which suits features of any scale, "row-adagrad" or "sgd"
    options         others of the readout, as `hybrid train` names them: {"tree": "balanced"}, {"negatives": 100}, ...
    warm_start      True: `fit` goes on from the parameters there are, on the same classes
    random_state    of the first weights and of the order of examples
    n_jobs          threads; results do not depend on it
    verbose         1: progress on stderr

    X is dense or sparse. It is not standardised: put a StandardScaler before hidden layers where features differ in scale.
    Without layers Adagrad makes their scale matter little. After `fit`:

    classes_  (V,) the classes
    losses_   mean loss of each epoch, in nats; sample_weight counts within a batch only, not between batches
    engine_   the Engine

    ValueError for fewer than two classes, and for options that the readout does not take; a fitted model then stays as it was.
    """

    def __init__(
        self,
        readout: str = "tree",
        *,
        hidden_layers: Sequence[int] = (100,),
        activation: str = "relu",
        width: int | None = 100,
        epochs: int = 20,
        batch: int = 32,
        rate: float = 0.1,
        trunk_rate: float | None = None,
        optimiser: str = "adagrad",
        options: Mapping[str, Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.readout = readout
        self.hidden_layers = hidden_layers
        self.activation = activation
        self.width = width
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.trunk_rate = trunk_rate
        self.optimiser = optimiser
        self.options = options
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @base.whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeClassifier":
        """Learn from examples; sample_weight multiplies the loss of each, and so how far it moves parameters."""
        on = self.warm_start and hasattr(self, "engine_")
        X, y = self._checked(X, y, reset=not on)
        classes, target = np.unique(y, return_inverse=True)
        if on:
            target = self._target(y)
        else:
            self.classes_ = classes
        weight = self._weights(X, sample_weight)
        if not on:
            self._begin(X, self._counts(target))
        self.engine_.schedule = "linear"
        self._learn(X, target, len(self.classes_), weight, self.epochs)
        return self

    @base.whole
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "TreeClassifier":
        """Go through some examples once, at the full rate. classes: all there are, needed in the first call only."""
        first = not hasattr(self, "engine_")
        if first and classes is None:
            raise ValueError("classes: found None in the first partial_fit, expected all classes there will be")
        X, y = self._checked(X, y, reset=first)
        if first:
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes: found others than in the first partial_fit, expected {self.classes_!r}")
        target, weight = self._target(y), self._weights(X, sample_weight)
        if first:
            self._begin(X, self._counts(target))
        self.engine_.schedule = "constant"
        self._learn(X, target, len(self.classes_), weight, 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each example, found in a tree without asking for all of them, (n,)."""
        parts = self._asked(X, 1, lambda **asked: self.engine_.best(k=1, **asked)[0][:, 0])
        found: np.ndarray = self.classes_[np.concatenate(parts)]
        return found

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The log-probabilities of all classes, (n, V) float32."""
        check_is_fitted(self)
        parts: np.ndarray = np.concatenate(self._asked(X, len(self.classes_), self.engine_.scores))
        return parts

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of all classes, (n, V) float64."""
        found: np.ndarray = np.exp(self.predict_log_proba(X), dtype=np.float64)
        found /= found.sum(axis=1, keepdims=True)  # float32 left a rounding
        return found

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-probabilities, (n, V); of two classes the log-odds of the second, (n,)."""
        log_probs = self.predict_log_proba(X)
        odds: np.ndarray = log_probs[:, 1] - log_probs[:, 0] if log_probs.shape[1] == 2 else log_probs
        return odds

    def _readout(self, counts: np.ndarray, width: int, seed: int) -> Readout:
        own = self.options or {}
        base.check_options(self.readout, own)
        options = {"rate": self.rate, "seed": seed, "readout_optimiser": self.optimiser, "biases": True, **own}
        return base.made(self.readout, counts, width, batch=self.batch, trunk=True, **options)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = self._taken(X, y, reset=reset)
        check_classification_targets(y)
        return X, y

    def _counts(self, target: np.ndarray) -> np.ndarray:
        if len(self.classes_) < 2:
            raise ValueError(f"y: found one class, {self.classes_[0]!r}; expected at least 2 classes")
        return np.bincount(target, minlength=len(self.classes_))

    def _target(self, y: np.ndarray) -> np.ndarray:
        """The numbers of classes; ValueError for one that is new."""
        place = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        new = self.classes_[place] != y
        if new.any():
            raise ValueError(
                f"y[{new.argmax()}]: found {y[new.argmax()]!r}, expected one of classes_: {self.classes_!r}"
            )
        return place
