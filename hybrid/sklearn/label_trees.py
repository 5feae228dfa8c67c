"""A classifier where an example may have any number of many labels."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from .. import check, metrics
from ..machine import kernel_threads
from ..readout import LabelTreeReadout, Readout
from ..sparse_label_tree import SparseLabelTree, label_clusters
from . import base
from .base import Learner

# Any number of labels an example, in the forms in which users of scikit-learn have them, and back.
#
# "one"    one label each: an array (n,)
# "dense"  an indicator: an array (n, V) of 0 and 1
# "csr"    the same, sparse
# "lists"  the labels of each example by name: a list of lists

EXPECTED = (
    "expected an indicator (n, V) of 0 and 1, dense or sparse, a list of labels for each example, or one label each"
)


class Labels(NamedTuple):
    """The labels of n examples.

    form     "one", "dense", "csr" or "lists"
    entries  (n, V) scipy CSR, an entry for each label
    classes  (V,) their names
    dtype    of an indicator
    """

    form: str
    entries: Any
    classes: np.ndarray
    dtype: Any = np.int64


def read(y: Any, classes: np.ndarray | None = None, *, strange: bool = False) -> Labels:
    """Labels in one of the forms.

    classes  the names that are known; None: all that occur, of an indicator the numbers of its columns
    strange  True: labels that are not among `classes` are left out

    Raises ValueError for another form, and for a label that is not among `classes`.
    """
    if sparse.issparse(y):
        return _indicator("csr", sparse.csr_array(check.sparse("y", y)), classes)
    y = np.asarray(y) if hasattr(y, "__array__") else y
    if _is_lists(y):
        return _named("lists", [_listed(row, at) for at, row in enumerate(y)], classes, strange)
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] > 1:
        return _indicator("dense", found, classes)
    assert_all_finite(found, input_name="y")
    check_classification_targets(found)
    return _named("one", [[label] for label in column_or_1d(found, warn=True)], classes, strange)


def written(labels: Labels, entries: Any) -> Any:
    """Labels that were found, (n, V) scipy CSR with the likeliest of a row first, in the form of others."""
    if labels.form == "one":
        return labels.classes[entries.indices[entries.indptr[:-1]]]
    if labels.form == "lists":
        return [row.tolist() for row in np.split(labels.classes[entries.indices], entries.indptr[1:-1])]
    ones = np.ones(len(entries.indices), labels.dtype)
    made = sparse.csr_array((ones, entries.indices.copy(), entries.indptr), entries.shape)
    made.sort_indices()
    return made if labels.form == "csr" else made.toarray()


def _indicator(form: str, y: Any, classes: np.ndarray | None) -> Labels:
    values = y.data if form == "csr" else y
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError(f"y: found an indicator {y.shape} with values other than 0 and 1, {EXPECTED}")
    if classes is not None and len(classes) != y.shape[1]:
        raise ValueError(f"y: found an indicator {y.shape}, expected {len(classes)} columns, one a label")
    entries = check.csr("y", y, zeros=False)
    return Labels(form, entries, np.arange(y.shape[1]) if classes is None else classes, y.dtype)


def _named(form: str, rows: list[list[Any]], classes: np.ndarray | None, strange: bool) -> Labels:
    at = np.cumsum([0, *map(len, rows)])
    flat = np.array([label for row in rows for label in row])
    known = np.unique(flat) if classes is None else classes
    if not len(flat):
        return Labels(form, sparse.csr_array((len(rows), len(known))), known)
    place = np.minimum(np.searchsorted(known, flat), len(known) - 1)
    new = known[place] != flat
    if new.any() and not strange:
        raise ValueError(f"y: found {flat[new.argmax()]!r}, expected one of {known!r}")
    at = np.concatenate([[0], np.cumsum(~new)])[at]
    entries = sparse.csr_array((np.ones(at[-1]), place[~new], at), (len(rows), len(known)))
    entries.sum_duplicates()
    return Labels(form, entries, known)


def _is_lists(y: Any) -> bool:
    """Whether y has the labels of each example. Rows of equal length of 0 and 1 are an indicator, as in all of scikit-learn."""
    if getattr(y, "ndim", 1) != 1 or isinstance(y, str | bytes) or not len(y):
        return False
    rows = list(y)
    if not all(isinstance(row, Iterable) and not isinstance(row, str | bytes) for row in rows):
        return False
    rows = [list(row) for row in rows]
    width = len(rows[0])
    indicator = width > 1 and all(len(row) == width and all(_is_bit(value) for value in row) for row in rows)
    return not indicator


def _is_bit(value: Any) -> bool:
    return not isinstance(value, str) and value in (0, 1)


def _listed(row: Any, at: int) -> list[Any]:
    labels = list(row)
    if any(isinstance(label, Iterable) and not isinstance(label, str) for label in labels):
        raise ValueError(f"y[{at}]: found {labels!r}, {EXPECTED}")
    return labels


# What classifiers of any number of labels answer, in the form in which y was given.


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
    _form: Labels

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
            return written(self._form, self._top(X, 1))
        return written(self._form, self._likely(X) if self.k is None else self._top(X, self.k))

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
        own = read(y, self.classes_, strange=True).entries
        ids, _ = self._best(X, k)
        check_consistent_length(ids, own)
        return metrics.precision(ids, own, sample_weight)

    def _named(self, found: Labels) -> None:
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


def read_required(y: Any, classes: np.ndarray | None = None) -> Labels:
    """See labels.read; ValueError for None."""
    if y is None:
        raise ValueError("y: requires y to be passed, but the target y is None")
    return read(y, classes)


# A linear classifier where an example may have any number of very many labels.


class SparseLabelTreeClassifier(Labeller, BaseEstimator):
    """Sparse features, such as TF-IDF -> a probabilistic label tree, every node of which is a regularised logistic regression
    trained to its optimum: a SparseLabelTree. Where there is no hidden layer it learns better than LabelTreeClassifier.

    k, threshold    as in LabelTreeClassifier
    C               as in LogisticRegression, of every node
    trees           how many; their probabilities are averaged
    tree            "clusters": of labels by the features of their examples; or (parents, leaf), for one tree
    arity, leaves   of the clusters, see SparseLabelTree
    tolerance, passes  when a node's training ends, see SparseLabelTree
    least           weights whose size is not above this are dropped
    random_state    of clusters and of the order of examples
    n_jobs          threads; changes no number

    y as in LabelTreeClassifier. After `fit`:

    classes_  (V,) the labels
    model_    the SparseLabelTree

    ValueError for fewer than two labels.
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        threshold: float = 0.5,
        C: float = 10.0,
        trees: int = 1,
        tree: Any = "clusters",
        arity: int = 2,
        leaves: int = 100,
        tolerance: float = 0.1,
        passes: int = 10,
        least: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.k = k
        self.threshold = threshold
        self.C = C
        self.trees = trees
        self.tree = tree
        self.arity = arity
        self.leaves = leaves
        self.tolerance = tolerance
        self.passes = passes
        self.least = least
        self.random_state = random_state
        self.n_jobs = n_jobs

    @base.whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseLabelTreeClassifier":
        """Learn from examples; sample_weight multiplies C, as in LogisticRegression."""
        found = read_required(y)
        X = self._taken(X, reset=True)
        check_consistent_length(X, found.entries)
        if isinstance(self.tree, str) and self.tree != "clusters":
            raise ValueError(f'tree: found {self.tree!r}, expected "clusters", or (parents, leaf)')
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        self._named(found)
        settings: dict[str, Any] = {
            "tolerance": self.tolerance,
            "passes": self.passes,
            "least": self.least,
            "weight": weight,
        }
        settings |= {"trees": self.trees, "tree": None if isinstance(self.tree, str) else self.tree}
        settings |= {"arity": self.arity, "leaves": self.leaves, "seed": base.seed_of(self.random_state)}
        with kernel_threads(base.threads_of(self.n_jobs)):
            self.model_ = SparseLabelTree(X, found.entries, C=self.C, **settings)
        return self

    def _taken(self, X: Any, *, reset: bool) -> Any:
        return base.validated(self, X, dtype=np.float32, reset=reset)

    def _ranked(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        X = self._taken(X, reset=False)
        with kernel_threads(base.threads_of(self.n_jobs)):
            return self.model_.best(X, k)

    def _likely(self, X: Any) -> Any:
        X = self._taken(X, reset=False)
        with kernel_threads(base.threads_of(self.n_jobs)):
            return self.model_.likely(X, self.threshold)

    def _log_probs(self, X: Any) -> np.ndarray:
        X = self._taken(X, reset=False)
        with kernel_threads(base.threads_of(self.n_jobs)):
            return self.model_.scores(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LabelTreeClassifier(Labeller, Learner):
    """Features -> hidden layers, if any -> a probabilistic label tree, where a label costs log V and not V.

    k               how many labels `predict` gives each example; None: those at least as probable as `threshold`
    threshold       see k
    tree            "huffman", "balanced", or (parents, leaf): see LabelTreeReadout; "clusters": of labels by the features of
                    their examples, see `hybrid.label_clusters`, in `partial_fit` those of the first part
    hidden_layers, activation, width, epochs, batch, rate, trunk_rate, optimiser, warm_start, random_state, n_jobs, verbose
                    as in TreeClassifier

    y is an indicator (n, V) of 0 and 1, dense or sparse; or a list of labels for each example, by name; or one label each, as
    for any classifier. Answers have the form of y. (Lists of equal length that hold only 0 and 1 are an indicator.) X is not
    standardised. After `fit`:

    classes_  (V,) the labels
    losses_   mean loss of each epoch: the sum of nats over the nodes that an example visits; sample_weight counts within a
              batch only, not between batches
    engine_   the Engine

    ValueError for fewer than two labels. Jasinska et al. 2016; Wydmuch et al. 2018, arXiv:1810.11671.
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        threshold: float = 0.5,
        tree: Any = "huffman",
        hidden_layers: Sequence[int] = (),
        activation: str = "relu",
        width: int | None = 100,
        epochs: int = 10,
        batch: int = 32,
        rate: float = 0.1,
        trunk_rate: float | None = None,
        optimiser: str = "adagrad",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.k = k
        self.threshold = threshold
        self.tree = tree
        self.hidden_layers = hidden_layers
        self.activation = activation
        self.width = width
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.trunk_rate = trunk_rate
        self.optimiser = optimiser
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @base.whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LabelTreeClassifier":
        """Learn from examples; sample_weight multiplies the loss of each, and so how far it moves parameters."""
        on = self.warm_start and hasattr(self, "engine_")
        X, found = self._checked(X, y, self.classes_ if on else None, reset=not on)
        weight = self._weights(X, sample_weight)
        if not on:
            self._begin_with(X, found)
        self.engine_.schedule = "linear"
        self._learn(X, found.entries, len(self.classes_), weight, self.epochs)
        return self

    @base.whole
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "LabelTreeClassifier":
        """Go through some examples once, at the full rate.

        classes  all labels there are; needed in the first call, except for an indicator, whose columns they are
        """
        first = not hasattr(self, "engine_")
        known = None if first and classes is None else np.unique(classes) if first else self.classes_
        X, found = self._checked(X, y, known, reset=first)
        if known is None and found.form in ("one", "lists"):
            raise ValueError("classes: found None in the first partial_fit, expected all labels there will be")
        weight = self._weights(X, sample_weight)
        if first:
            self._begin_with(X, found)
        self.engine_.schedule = "constant"
        self._learn(X, found.entries, len(self.classes_), weight, 1)
        return self

    def _readout(self, counts: np.ndarray, width: int, seed: int) -> Readout:
        settings: dict[str, Any] = {"rate": self.rate, "optimiser": self.optimiser, "biases": True, "seed": seed}
        return LabelTreeReadout(counts, width, tree=self._shape, batch=self.batch, **settings)

    def _checked(self, X: Any, y: Any, classes: Any, *, reset: bool) -> tuple[Any, Labels]:
        found = read_required(y, classes)
        X = self._taken(X, reset=reset)
        check_consistent_length(X, found.entries)
        return X, found

    def _begin_with(self, X: Any, found: Labels) -> None:
        self._named(found)
        self._shape = self.tree
        if isinstance(self.tree, str) and self.tree == "clusters":
            self._shape = label_clusters(X, found.entries, seed=base.seed_of(self.random_state))
        self._begin(X, np.bincount(found.entries.indices, minlength=len(found.classes)))

    def _ranked(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        parts = self._asked(X, k, functools.partial(self.engine_.best, k=k))
        ids, log_probs = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(log_probs)

    def _likely(self, X: Any) -> Any:
        """The probabilities of the labels that are likely enough, (n, V) CSR, likeliest first."""

        def ask(**asked: Any) -> Any:
            engine, readout = self.engine_, self.engine_.readout
            return engine.inline.run(readout.likely, engine.hidden(**asked), self.threshold).wait()  # type: ignore[attr-defined]

        return sparse.vstack(self._asked(X, 1, ask), format="csr")

    def _log_probs(self, X: Any) -> np.ndarray:
        parts: np.ndarray = np.concatenate(self._asked(X, len(self.classes_), self.engine_.scores))
        return parts
