"""Tags of questions about cooking, from TF-IDF: labels/cooking.train and .valid of fastText's tutorial."""

import math
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from bench import problems
from bench.contender import Among, Log, Problem, Space
from bench.peers import peer
from bench.problems._labels import KEPT, Examples, Learn, Rank, problem
from hybrid.formats import fasttext as format
from hybrid.sklearn import label_trees

FASTTEXT: Space = {"lr": Log(0.1, 2), "dim": Among((50, 100, 200)), "wordNgrams": Among((1, 2))}


def make(arguments: Any) -> Problem | None:
    """See bench.problems. All contenders meet the same words: lower case, of two letters or more."""
    folder = problems.there("labels")
    if folder is None or not (folder / "cooking.train").exists():
        return None
    read = [format.load(folder / f"cooking.{part}") for part in ("train", "valid")]
    cut = 2000 if arguments.quick else None
    vectoriser = TfidfVectorizer(dtype=np.float32)
    classes, words, parts = label_trees.read(read[0].labels[:cut]).classes, vectoriser.build_analyzer(), []
    for number, one in enumerate(read):
        texts = one.texts[:cut]
        features = vectoriser.transform(texts) if number else vectoriser.fit_transform(texts)
        has = label_trees.read(one.labels[:cut], classes, strange=True).entries
        parts.append(Examples(features.tocsr(), has, [" ".join(words(text)) for text in texts]))
    rivals = {}
    if peer("fasttext"):
        first = {"lr": 0.5, "dim": 100, "wordNgrams": 1}
        rivals = {
            f"fastText {loss}": (_fasttext(loss, arguments.threads), FASTTEXT, first)
            for loss in ("hs", "softmax", "ova")
        }
    return problem(
        f"cooking.train ({len(parts[0].labels.indptr) - 1:,} questions, {len(classes)} tags)",
        parts[0],
        parts[1],
        rivals,
    )


def _fasttext(loss: str, threads: int) -> Learn:
    """fastText's own trainer on a file in an order drawn from the seed; it reads it on the clock."""

    def learn(examples: Examples, settings: Mapping[str, Any], seed: int, epochs: float) -> tuple[Rank, int, float]:
        import fasttext

        texts = examples.texts or []
        order = np.random.default_rng(seed).permutation(len(texts))
        rows = np.split(examples.labels.indices, examples.labels.indptr[1:-1])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            format.save(path, [texts[row] for row in order], [[str(label) for label in rows[row]] for row in order])
            asked = {**settings, "epoch": math.ceil(epochs), "thread": threads, "verbose": 0}
            start = time.perf_counter()
            model = fasttext.train_supervised(input=os.fspath(path), loss=loss, **asked)
            seconds = time.perf_counter() - start

        def rank(asked: Examples) -> np.ndarray:
            found, _ = model.f.multilinePredict([f"{text}\n" for text in asked.texts or []], KEPT, 0.0, "strict")
            ids = np.full((len(found), KEPT), -1, np.int32)
            for row, said in enumerate(found):
                ids[row, : len(said)] = [int(label.removeprefix(format.LABEL)) for label in said]
            return ids

        return rank, model.get_input_matrix().size + model.get_output_matrix().size, seconds

    return learn
