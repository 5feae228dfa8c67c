"""A classifier where an example may have any number of many labels."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from ..label_partition import label_clusters
from ..readout import LabelTreeReadout, Readout
from . import labeller, labels, training
from .labeller import Labeller
from .learner import Learner


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

    @training.whole
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

    @training.whole
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

    def _checked(self, X: Any, y: Any, classes: Any, *, reset: bool) -> tuple[Any, labels.Labels]:
        found = labeller.read(y, classes)
        X = self._taken(X, reset=reset)
        check_consistent_length(X, found.entries)
        return X, found

    def _begin_with(self, X: Any, found: labels.Labels) -> None:
        self._named(found)
        self._shape = self.tree
        if isinstance(self.tree, str) and self.tree == "clusters":
            self._shape = label_clusters(X, found.entries, seed=training.seed(self.random_state))
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
