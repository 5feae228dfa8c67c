"""A multi-label classifier for many labels: label trees."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from .. import check, metrics
from ..machine import kernel_threads
from ..sparse_label_tree import NodeSolver, SparseLabelTree
from . import base

EXPECTED = "expected an indicator (n, V) of 0 and 1, dense or sparse, or one label each"


class Labels(NamedTuple):
    """The labels of n examples.

    form     "one" label each, an array (n,); "dense", an indicator (n, V) of 0 and 1; "csr", the same, sparse
    entries  (n, V) scipy CSR, an entry for each label
    classes  (V,) their names
    dtype    of an indicator
    """

    form: str
    entries: Any
    classes: np.ndarray
    dtype: Any = np.int64


@dataclass(eq=False, repr=False, kw_only=True)
class SparseLabelTreeClassifier(ClassifierMixin, BaseEstimator):
    """A SparseLabelTree for sparse features, such as TF-IDF: every node is a regularised logistic regression at its optimum.

    k               number of labels that `predict` returns per example; None: those at least as probable as `threshold`
    threshold       see k
    C               as in LogisticRegression, for every node
    trees           number of trees, whose probabilities are averaged
    tree            "clusters": of labels by the features of their examples; or (parents, leaf), for one tree
    arity, leaves   of the clusters, see SparseLabelTree
    tolerance, passes  stopping criteria of a node's training, see SparseLabelTree
    least           weights whose size is not above this are dropped
    random_state    of clusters and of the order of examples
    n_jobs          threads; does not affect results

    y is an indicator (n, V) of 0 and 1, dense or sparse, which MultiLabelBinarizer(sparse_output=True) makes of lists; or one
    label each, as for any classifier. Predictions have its form. After `fit`:

    classes_  (V,) the labels
    model_    the SparseLabelTree

    ValueError for fewer than two labels.
    """

    k: int | None = None
    threshold: float = 0.5
    C: float = 10.0
    trees: int = 1
    tree: Any = "clusters"
    arity: int = 2
    leaves: int = 100
    tolerance: float = 0.1
    passes: int = 10
    least: float = 0.05
    random_state: Any = None
    n_jobs: int | None = None

    @base.atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseLabelTreeClassifier":
        """Learns from examples; sample_weight multiplies C, as in LogisticRegression."""
        labels = read(y)
        X = base.validated(self, X, dtype=np.float32, reset=True)
        check_consistent_length(X, labels.entries)
        if isinstance(self.tree, str) and self.tree != "clusters":
            raise ValueError(f'tree: found {self.tree!r}, expected "clusters", or (parents, leaf)')
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        if len(labels.classes) < 2:
            raise ValueError(f"y: found {len(labels.classes)} classes, expected labels of at least 2")
        self.classes_, self._form = labels.classes, labels._replace(entries=None)
        settings = {name: getattr(self, name) for name in ("arity", "leaves")}
        settings |= {"trees": self.trees if isinstance(self.tree, str) else self.tree, "weight": weight}
        settings |= {"solver": NodeSolver(self.C, self.tolerance, self.passes, self.least)}
        settings |= {"seed": base.seed_of(self.random_state)}
        with kernel_threads(base.threads_of(self.n_jobs)):
            self.model_ = SparseLabelTree(X, labels.entries, **settings)
        return self

    def predict(self, X: Any) -> Any:
        """Returns the labels of each example, in the form of `fit`: see k and threshold; for one label each the most likely."""
        check_is_fitted(self)
        k = 1 if self._form.form == "one" else self.k
        return write(self._form, self._answer(self.model_.likely, X, self.threshold) if k is None else self._top(X, k))

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """Returns the probabilities of all labels, (n, V) float64; for one label each divided by their sum.

        k  only the k most likely labels, as scipy CSR: recommended for many labels
        """
        check_is_fitted(self)
        if k is not None:
            top = self._top(X, k)
            top.sort_indices()
            return top
        every = np.exp(self._answer(self.model_.scores, X), dtype=np.float64)
        return every / every.sum(axis=1, keepdims=True) if self._form.form == "one" else every

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, k: int = 1) -> float:
        """Returns precision@k: the fraction of the k most likely labels that the examples have."""
        check_is_fitted(self)
        own = read(y, self.classes_).entries
        ids, _ = self._best(X, k)
        check_consistent_length(ids, own)
        return metrics.precision(ids, own, sample_weight)

    def _best(self, X: Any, k: int) -> Any:
        return self._answer(self.model_.best, X, check.whole("k", k, 1, len(self.classes_)))

    def _top(self, X: Any, k: int) -> Any:
        """Returns the probabilities of the k most likely labels, (n, V) CSR, most likely first."""
        ids, log_probs = self._best(X, k)
        at = np.arange(0, ids.size + 1, k)
        return sparse.csr_array((np.exp(log_probs).ravel(), ids.ravel(), at), (len(ids), len(self.classes_)))

    def _answer(self, ask: Any, X: Any, *more: Any) -> Any:
        X = base.validated(self, X, dtype=np.float32, reset=False)
        with kernel_threads(base.threads_of(self.n_jobs)):
            return ask(X, *more)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags


def read(y: Any, classes: np.ndarray | None = None) -> Labels:
    """Returns labels in one of the forms, without those that are not among `classes`; ValueError for another form.

    classes  the known names; None: all that occur, for an indicator the column numbers
    """
    if y is None:
        raise ValueError("y: requires y to be passed, but the target y is None")
    if sparse.issparse(y):
        return _indicator("csr", sparse.csr_array(check.sparse("y", y)), classes)
    try:
        array = np.asarray(y)
    except ValueError:
        check_classification_targets(y)  # whose error for lists of labels has a remedy
        raise
    if array.ndim == 2 and array.shape[1] > 1:
        return _indicator("dense", array, classes)
    assert_all_finite(array, input_name="y")
    check_classification_targets(array)
    flat = column_or_1d(array, warn=True)
    known = np.unique(flat) if classes is None else classes
    place = np.minimum(np.searchsorted(known, flat), len(known) - 1)
    met = known[place] == flat
    at = np.concatenate([[0], np.cumsum(met)])
    return Labels("one", sparse.csr_array((np.ones(at[-1]), place[met], at), (len(flat), len(known))), known)


def write(labels: Labels, entries: Any) -> Any:
    """Converts predictions, (n, V) scipy CSR with the most likely of a row first, to the form of `labels`."""
    if labels.form == "one":
        return labels.classes[entries.indices[entries.indptr[:-1]]]
    ones = np.ones(len(entries.indices), labels.dtype)
    made = sparse.csr_array((ones, entries.indices.copy(), entries.indptr), entries.shape)
    made.sort_indices()
    return made if labels.form == "csr" else made.toarray()


def _indicator(form: str, y: Any, classes: np.ndarray | None) -> Labels:
    values = y.data if form == "csr" else y
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError(f"y: found an indicator {y.shape} with values other than 0 and 1, {EXPECTED}")
    if classes is not None and len(classes) != y.shape[1]:
        raise ValueError(f"y: found an indicator {y.shape}, expected {len(classes)} columns, one per label")
    entries = check.csr("y", y, zeros=False)
    return Labels(form, entries, np.arange(y.shape[1]) if classes is None else classes, y.dtype)
