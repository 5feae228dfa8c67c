"""A classifier for many classes, whose output layer is a tree, a full or a sampled softmax."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .. import settings
from ..readout import Readout, registry
from . import base
from .base import Learner

COMMON = ("rate", "seed", "readout_optimiser", "biases")  # options of every readout


@dataclass(eq=False, repr=False)
class TreeClassifier(ClassifierMixin, Learner):
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
    options: Mapping[str, Any] | None = None

    def predict(self, X: Any) -> np.ndarray:
        """Returns the likeliest class of each example, (n,); a tree does not compute all probabilities for it."""
        check_is_fitted(self)
        parts = self._answers(X, 1, lambda **question: self.engine_.best(k=1, **question)[0][:, 0])
        likeliest: np.ndarray = self.classes_[np.concatenate(parts)]
        return likeliest

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Returns the log-probabilities of all classes, (n, V) float32."""
        log_probs: np.ndarray = self._log_probs(X)
        return log_probs

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns the probabilities of all classes, (n, V) float64."""
        probs: np.ndarray = np.exp(self.predict_log_proba(X), dtype=np.float64)
        probs /= probs.sum(axis=1, keepdims=True)  # removes the float32 rounding error
        return probs

    def _read(self, X: Any, y: Any, classes: Any, *, first: bool, partial: bool) -> tuple[Any, np.ndarray]:
        if first and partial and classes is None:
            raise ValueError("classes: found None in the first partial_fit, expected all classes there will be")
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

    def _readout(self, counts: np.ndarray, width: int, seed: int) -> Readout:
        own = self.options or {}
        taken = {*COMMON, *settings.fields(getattr(registry.load(self.readout), "Options", None))}
        for name in own:
            if name not in taken:
                found = f"{name!r}, which a {self.readout} readout does not take"
                raise ValueError(f"options: found {found}; expected some of {', '.join(sorted(taken))}")
        options = {"rate": self.rate, "seed": seed, "readout_optimiser": self.optimiser, "biases": True, **own}
        return base.made(self.readout, counts, width, batch=self.batch, **options)
