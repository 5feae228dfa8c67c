"""What classifiers of any number of labels answer, in the form in which y was given."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .. import check
from ..judge import labels as judge
from . import labels


class Labeller(ClassifierMixin):
    """The answers of an estimator with the parameters k and threshold. Once fitted it has `classes_`, `_form` (labels.Labels
    without its entries) and the methods

    _ranked(X, k)  the k likeliest labels of each example and their log-probabilities, (n, k) each
    _likely(X)     the probabilities of the labels that are likely enough, (n, V) CSR, likeliest first
    _log_probs(X)  those of all labels, (n, V)
    """

    k: int | None
    threshold: float
    classes_: np.ndarray
    _form: labels.Labels

    def _ranked(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _likely(self, X: Any) -> Any:
        raise NotImplementedError

    def _log_probs(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """The labels of each example, in the form of `fit`: see k and threshold; of one label each the likeliest."""
        check_is_fitted(self)
        if self._form.form == "one":
            return labels.written(self._form, self._top(X, 1))
        return labels.written(self._form, self._likely(X) if self.k is None else self._top(X, self.k))

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """The probabilities of all labels, (n, V) float64; of one label each divided by their sum.

        k  only the k likeliest labels, as scipy CSR: what to take where labels are many
        """
        check_is_fitted(self)
        if k is not None:
            found = self._top(X, k)
            found.sort_indices()
            return found
        every = np.exp(self._log_probs(X), dtype=np.float64)
        return every / every.sum(axis=1, keepdims=True) if self._form.form == "one" else every

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-odds of each label, (n, V); of one label each its log-probability, of two classes the difference, (n,)."""
        check_is_fitted(self)
        log_probs = self._log_probs(X)
        if self._form.form != "one":
            odds: np.ndarray = log_probs - np.log(-np.expm1(np.minimum(log_probs, -np.finfo(np.float32).tiny)))
            return odds
        return log_probs[:, 1] - log_probs[:, 0] if len(self.classes_) == 2 else log_probs

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, k: int = 1) -> float:
        """precision@k: the share of the k likeliest labels that the examples have."""
        check_is_fitted(self)
        own = labels.read(y, self.classes_, strange=True).entries
        ids, _ = self._best(X, k)
        check_consistent_length(ids, own)
        return judge.precision(ids, own, sample_weight)

    def _named(self, found: labels.Labels) -> None:
        """Take the names and the form of labels."""
        if len(found.classes) < 2:
            raise ValueError(f"y: found {len(found.classes)} classes, expected labels of at least 2")
        self.classes_, self._form = found.classes, found._replace(entries=None)

    def _best(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        check.whole("k", k, 1, len(self.classes_))
        return self._ranked(X, k)

    def _top(self, X: Any, k: int) -> Any:
        """The probabilities of the k likeliest labels, (n, V) CSR, likeliest first."""
        ids, log_probs = self._best(X, k)
        at = np.arange(0, ids.size + 1, k)
        return sparse.csr_array((np.exp(log_probs).ravel(), ids.ravel(), at), (len(ids), len(self.classes_)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags


def read(y: Any, classes: np.ndarray | None = None) -> labels.Labels:
    """See labels.read; ValueError for None."""
    if y is None:
        raise ValueError("y: requires y to be passed, but the target y is None")
    return labels.read(y, classes)
