"""Contenders and metrics for any number of labels per example.

A search trains on four fifths of the training examples and validates on the rest. A comparison trains on the same part for its
validation figures. Then it trains on all of them, timed, for the test figures.
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from bench.harness.measure import peer
from bench.quality.contender import Among, Contender, Figures, Log, Peak, Problem, Run, Space, there
from hybrid import metrics
from hybrid.formats import fasttext as format
from hybrid.formats import svm
from hybrid.sklearn import SparseLabelTreeClassifier, TreeClassifier
from hybrid.train.job import Watched

KEPT = 5  # labels ranked per example
SEARCHED = "four fifths of it"
DENSE: Space = {"rate": Log(0.02, 0.5), "batch": Among((8, 32, 128)), "width": Among((50, 100, 200))}
LINEAR: Space = {"C": Log(1, 100), "arity": Among((2, 8, 16)), "leaves": Among((50, 100, 200))}


class Examples(NamedTuple):
    """Features (n, F) CSR, labels (n, V) CSR and, for texts, their words."""

    features: Any
    labels: Any
    texts: list[str] | None = None

    def of(self, rows: np.ndarray) -> "Examples":
        """Returns some of the examples."""
        texts = [self.texts[row] for row in rows] if self.texts is not None else None
        return Examples(self.features[rows], self.labels[rows], texts)


Rank = Callable[[Examples], np.ndarray]  # the KEPT likeliest labels of each example
Learn = Callable[[Examples, Mapping[str, Any], int, float], tuple[Rank, int, float]]  # and parameters, seconds


def of_labels(data: str, train: Examples, test: Examples, rivals: Mapping[str, tuple[Learn, Space, dict]]) -> Problem:
    """Builds a problem from training and test examples. rivals: additional contenders: learn, space, first settings."""
    order = np.random.default_rng(0).permutation(train.labels.shape[0])
    parts = [train.of(np.sort(part)) for part in np.split(order, [len(order) * 4 // 5])]
    contenders = {name: _contender(*one, parts, train, test) for name, one in {**ours(), **rivals}.items()}
    once = _contender(_one_against_the_rest, {}, {"C": 10.0}, parts, train, test)
    contenders["one against the rest"] = once._replace(once=True, small=None)
    return Problem(data, Watched("precision@1", lowest=False), contenders, epochs=(5, 25), small=SEARCHED)


def ours() -> dict[str, tuple[Learn, Space, dict]]:
    """Returns our contenders: linear trees, and two that learn one label at a time."""
    linear, dense = {"C": 10.0, "arity": 2, "leaves": 100}, {"rate": 0.1, "batch": 32, "width": 100}
    found: dict[str, tuple[Learn, Space, dict]] = {
        f"sparse label tree x {trees}": (_estimator(SparseLabelTreeClassifier, trees=trees), LINEAR, linear)
        for trees in (1, 3)
    }
    for readout in ("tree", "full"):
        found[f"{readout}, a label at a time"] = (_estimator(TreeClassifier, readout=readout), DENSE, dense)
    return found


def figures(rank: Rank, examples: Examples, propensity: np.ndarray) -> Figures:
    """Returns precision and propensity-scored precision at 1, 3, 5; nDCG at 3, 5."""
    ids, found = rank(examples), {}
    for k in (1, 3, 5):
        found[f"precision@{k}"] = metrics.precision(ids[:, :k], examples.labels)
        if k > 1:
            found[f"ndcg@{k}"] = metrics.ndcg(ids[:, :k], examples.labels)
        found[f"psp@{k}"] = metrics.propensity_precision(ids[:, :k], examples.labels, propensity)
    return found


def _contender(
    learn: Learn, space: Space, first: dict, parts: list[Examples], whole: Examples, test: Examples
) -> Contender:
    propensity = metrics.propensities(whole.labels)

    def trained(examples: Examples, settings: Mapping[str, Any], seed: int, epochs: float) -> tuple[Rank, Run]:
        peak, learned = Peak(), math.ceil(epochs) * examples.labels.shape[0]
        rank, size, seconds = learn(examples, settings, seed, epochs)
        run = Run(dict, lambda: figures(rank, test, propensity), epochs, seconds, learned, size, peak.bytes())
        return rank, run

    def search(settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        rank, run = trained(parts[0], settings, seed, epochs)
        return run._replace(valid=lambda: figures(rank, parts[1], propensity))

    def compare(settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        return trained(whole, settings, seed, epochs)[1]._replace(valid=search(settings, seed, epochs).valid)

    return Contender(compare, space, first, small=search)


def _estimator(kind: type, **fixed: Any) -> Learn:
    """Wraps an estimator of hybrid.sklearn. A single-label estimator learns from a copy of the example for each label."""

    def learn(examples: Examples, settings: Mapping[str, Any], seed: int, epochs: float) -> tuple[Rank, int, float]:
        asked = {**fixed, **settings, "random_state": seed, "n_jobs": -1}
        asked["passes" if kind is SparseLabelTreeClassifier else "epochs"] = math.ceil(epochs)
        model, x, y = kind(**asked), examples.features, sparse.csr_array(examples.labels)
        if kind is TreeClassifier:
            x, y = x[np.repeat(np.arange(x.shape[0]), np.diff(y.indptr))], y.indices
        start = time.perf_counter()
        model.fit(x, y)
        seconds = time.perf_counter() - start
        return lambda asked: _ranked(model, asked), _size(model), seconds

    return learn


def _ranked(model: Any, examples: Examples) -> np.ndarray:
    """Ranks with an estimator that was trained on some or all labels."""
    scores = model.predict_proba(examples.features)
    ids = metrics.ranked(scores, min(KEPT, scores.shape[1]))
    return np.asarray(model.classes_)[ids]


def _size(model: Any) -> int:
    if isinstance(model, SparseLabelTreeClassifier):
        return model.model_.weights
    held = [model.engine_.embedding.parameters(), model.engine_.readout.parameters()]
    return sum(part.size for parts in held for part in parts.values() if part.dtype.kind == "f")


def _one_against_the_rest(
    examples: Examples, settings: Mapping[str, Any], seed: int, epochs: float
) -> tuple[Rank, int, float]:
    """Trains scikit-learn's logistic regression per label: the ceiling, at a cost proportional to the labels."""
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", **settings))
    used = np.flatnonzero(np.bincount(examples.labels.indices, minlength=examples.labels.shape[1]))
    start = time.perf_counter()
    model.fit(examples.features, examples.labels[:, used])
    seconds = time.perf_counter() - start

    def rank(asked: Examples) -> np.ndarray:
        return used[metrics.ranked(model.predict_proba(asked.features), min(KEPT, len(used)))]

    return rank, sum(one.coef_.size + 1 for one in model.estimators_ if hasattr(one, "coef_")), seconds


# Tags of questions about cooking, from TF-IDF: labels/cooking.train and .valid of fastText's tutorial.

FASTTEXT: Space = {"lr": Log(0.1, 2), "dim": Among((50, 100, 200)), "wordNgrams": Among((1, 2))}


def make_labels(arguments: Any) -> Problem | None:
    """Builds the problem, see bench/quality/quality.py. All contenders use the same words: lower case, two letters or more."""
    folder = there("labels")
    if folder is None or not (folder / "cooking.train").exists():
        return None
    read = [format.load(folder / f"cooking.{part}") for part in ("train", "valid")]
    cut = 2000 if arguments.quick else None
    vectoriser = TfidfVectorizer(dtype=np.float32)
    names = MultiLabelBinarizer(sparse_output=True).fit(read[0].labels[:cut])
    known, words, parts = set(names.classes_), vectoriser.build_analyzer(), []
    for number, one in enumerate(read):
        texts = one.texts[:cut]
        features = vectoriser.transform(texts) if number else vectoriser.fit_transform(texts)
        has = sparse.csr_array(names.transform([known.intersection(row) for row in one.labels[:cut]])).sorted_indices()
        parts.append(Examples(features.tocsr(), has, [" ".join(words(text)) for text in texts]))
    rivals = {}
    if peer("fasttext"):
        first = {"lr": 0.5, "dim": 100, "wordNgrams": 1}
        rivals = {
            f"fastText {loss}": (_fasttext(loss, arguments.threads), FASTTEXT, first)
            for loss in ("hs", "softmax", "ova")
        }
    return of_labels(
        f"cooking.train ({len(parts[0].labels.indptr) - 1:,} questions, {len(known)} tags)",
        parts[0],
        parts[1],
        rivals,
    )


def _fasttext(loss: str, threads: int) -> Learn:
    """Wraps fastText's own trainer on a file in an order drawn from the seed; reading it is timed."""

    def learn(examples: Examples, settings: Mapping[str, Any], seed: int, epochs: float) -> tuple[Rank, int, float]:
        import fasttext

        texts = examples.texts or []
        order = np.random.default_rng(seed).permutation(len(texts))
        rows = np.split(examples.labels.indices, examples.labels.indptr[1:-1])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            marked = ["".join(f"{format.LABEL}{label} " for label in rows[row]) + texts[row] for row in order]
            path.write_text("\n".join(marked) + "\n")
            asked = {**settings, "epoch": math.ceil(epochs), "thread": threads, "verbose": 0}
            start = time.perf_counter()
            model = fasttext.train_supervised(input=os.fspath(path), loss=loss, **asked)
            seconds = time.perf_counter() - start

        def rank(asked: Examples) -> np.ndarray:
            found, _ = model.f.multilinePredict([f"{text}\n" for text in asked.texts or []], KEPT, 0.0, "strict")
            ids = np.full((len(found), KEPT), -1, np.int32)
            for row, names in enumerate(found):
                ids[row, : len(names)] = [int(label.removeprefix(format.LABEL)) for label in names]
            return ids

        return rank, model.get_input_matrix().size + model.get_output_matrix().size, seconds

    return learn


# Functions of genes of yeast, from 103 dense numbers: labels/yeast_train.txt and yeast_test.txt, in LIBSVM's format.

FEATURES, LABELS = 103, 14


def make_yeast(arguments: Any) -> Problem | None:
    """Builds the problem, see bench/quality/quality.py."""
    folder = there("labels")
    if folder is None or not (folder / "yeast_train.txt").exists():
        return None
    parts = []
    for part in ("train", "test"):
        read = svm.load(folder / f"yeast_{part}.txt", features=FEATURES, labels=LABELS)
        parts.append(Examples(read.features, read.labels))
    return of_labels(f"yeast ({parts[0].labels.shape[0]:,} genes, {LABELS} labels)", parts[0], parts[1], {})
