"""A linear classifier where an example may have any number of very many labels."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from ..processors import kernel_threads
from ..sparse_label_tree import SparseLabelTree
from . import labeller, training
from .labeller import Labeller


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

    @training.whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseLabelTreeClassifier":
        """Learn from examples; sample_weight multiplies C, as in LogisticRegression."""
        found = labeller.read(y)
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
        settings |= {"arity": self.arity, "leaves": self.leaves, "seed": training.seed(self.random_state)}
        with kernel_threads(training.threads(self.n_jobs)):
            self.model_ = SparseLabelTree(X, found.entries, C=self.C, **settings)
        return self

    def _taken(self, X: Any, *, reset: bool) -> Any:
        return training.validated(self, X, dtype=np.float32, reset=reset)

    def _ranked(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        X = self._taken(X, reset=False)
        with kernel_threads(training.threads(self.n_jobs)):
            return self.model_.best(X, k)

    def _likely(self, X: Any) -> Any:
        X = self._taken(X, reset=False)
        with kernel_threads(training.threads(self.n_jobs)):
            return self.model_.likely(X, self.threshold)

    def _log_probs(self, X: Any) -> np.ndarray:
        X = self._taken(X, reset=False)
        with kernel_threads(training.threads(self.n_jobs)):
            return self.model_.scores(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
