"""Functions of genes of yeast, from 103 dense numbers: labels/yeast_train.txt and yeast_test.txt, in LIBSVM's format."""

from typing import Any

from bench import problems
from bench.contender import Problem
from bench.problems._labels import Examples, problem
from hybrid.formats import svm

FEATURES, LABELS = 103, 14


def make(arguments: Any) -> Problem | None:
    """See bench.problems."""
    folder = problems.there("labels")
    if folder is None or not (folder / "yeast_train.txt").exists():
        return None
    parts = []
    for part in ("train", "test"):
        read = svm.load(folder / f"yeast_{part}.txt", features=FEATURES, labels=LABELS)
        parts.append(Examples(read.features, read.labels))
    return problem(f"yeast ({parts[0].labels.shape[0]:,} genes, {LABELS} labels)", parts[0], parts[1], {})
