"""Any number of labels an example: words or features -> the weighted sum of their rows -> MLP -> a label tree.

Texts become bags of words with weights of length 1: how often a word occurs times log((1 + n) / (1 + d)) + 1, where d of the n
texts have it (TF-IDF). Features of LIBSVM's format are taken as they are. Where --valid names no file, a share of the examples
validates.
"""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import check
from ..engine import Engine
from ..feeds.arrays import ArrayFeed, digest
from ..judge import labels as judge
from ..readout.base.owners import OWNERS, owners_option
from ..settings import flag, number, option, positive
from ..sparse import OPTIMISERS
from ..train.job import Watched
from ..train.runs import Trained
from . import _engine, _labelled
from ._engine import DenseOptions, EngineJob, load
from ._labelled import FILES, Examples, Known

__all__ = ["FILES", "TUNED", "Evaluation", "Options", "Use", "complete", "evaluate", "load", "prepare"]

RANKS = True
TUNED: dict[str, dict[str, Any]] = {}
ASKED = 1024  # examples at a time


@dataclasses.dataclass(frozen=True)
class Options(DenseOptions):
    """Of `hybrid train labels`."""

    examples: str | None = option(
        None, "a file of fastText or LIBSVM", group="data", needed=True, type=os.path.abspath, metavar="FILE"
    )
    format: str = option("fasttext", "of all files of examples", group="data", choices=("fasttext", "svm"))
    valid: str | None = option(
        None,
        "examples that validate (default: a share of those to learn from)",
        group="data",
        type=os.path.abspath,
        metavar="FILE",
    )
    valid_share: float = option(0.1, "how many validate where --valid names no file", group="data", type=number)
    tokens: str = option("words", "how texts are cut into tokens", group="data", choices=("words", "whitespace"))
    min_count: int = option(1, "rarer words are left out", group="data", type=positive)
    tree: str = option("clusters", "its shape", choices=("clusters", "huffman", "balanced"))
    owners: int = owners_option("label tree")
    linear: bool = option(False, "no trunk: the sum of the rows is the hidden vector, as in fastText")
    readout: str = option("label_tree", "the output layer", choices=("label_tree", "full"))
    width: int = option(100, "width of the input rows", type=positive)
    epochs: int = option(10, "passes over the data", group="training", type=positive)
    batch: int | None = option(32, "examples a batch", group="training", type=positive)
    micro_batches: int = option(1, "parts of a batch that overlap", group="training", type=positive)
    rate: float = option(
        0.1, "learning rate of the readout", group="training", type=number, by=("readout_optimiser", {})
    )
    rows_rate: float = option(
        0.1, "learning rate of the input rows", group="training", type=number, by=("rows_optimiser", {})
    )
    rows_optimiser: str = option("adagrad", "how the input rows move", group="training", choices=OPTIMISERS)
    readout_optimiser: str = option("adagrad", "how the nodes' rows move", group="training", choices=OPTIMISERS)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Of `hybrid eval` on a run of labels."""

    examples: str | None = option(
        None, "examples to measure on (default: those that validated)", type=os.path.abspath, metavar="FILE"
    )


class Labels(EngineJob):
    """Examples, less those that validate; validated by precision@1."""

    evaluations = 1

    def __init__(self, options: dict[str, Any]):
        if not 0 < options["valid_share"] < 1:
            raise ValueError(f"--valid-share: found {options['valid_share']}, expected a share between 0 and 1")
        self.known, self._train, self._valid = _parts(options)
        feed = ArrayFeed(*self._train, **{name: options[name] for name in ("batch", "epochs", "seed")})
        form: dict[str, Any] = {"mean": True, "weighted": True, "undivided": False, "spread": 0.1}
        watched, data = (
            Watched("valid precision@1", lowest=False),
            digest(*(part for one in self._valid for part in (one.indptr, one.indices, one.data))),
        )
        super().__init__(options, feed, watched=watched, data=data, trunk=not options["linear"], **form)

    def make(self) -> Engine:
        """The untrained engine, its tree from clusters of the labels unless the options name another."""
        options = self.options
        if options["tree"] == "clusters":
            from ..label_partition import label_clusters

            options = options | {"tree": label_clusters(*self._train, seed=options["seed"])}
        return _engine.make_engine(options, self.feed, **self.form)

    def keep(self, folder: Path) -> None:
        """Write the words and the names of the labels."""
        _labelled.keep(folder, self.known)

    def validate(self, model: Engine) -> dict[str, float]:
        """precision@1 and nDCG@5 of the examples that validate."""
        found = figures(model, *self._valid)
        return {f"valid {name}": found[name] for name in ("precision@1", "ndcg@5") if name in found}

    def final(self, model: Engine) -> dict[str, Any]:
        """How many examples and labels there are."""
        return {
            "examples": self._train.features.shape[0],
            "valid examples": self._valid.features.shape[0],
            "labels": self.known.classes,
        }


def prepare(options: dict[str, Any]) -> Labels:
    """Files of examples -> features and labels."""
    return Labels(options)


def complete(chosen: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Options that follow from others; ValueError for those that contradict each other."""
    if said.get("valid") and said.get("valid_share"):
        raise ValueError("--valid and --valid-share contradict each other: both say who validates; leave one out")
    if said.get("linear") and (trunk := [name for name in ("hidden", "layers", "readout_width") if said.get(name)]):
        raise ValueError(
            f"--linear and {flag(trunk[0])} contradict each other: a linear model has no trunk; leave one out"
        )
    if chosen["readout"] == "full" and chosen["owners"] != OWNERS:
        raise ValueError("--owners and --readout full contradict each other: a full softmax has none; leave one out")
    return _engine.complete(chosen, said)


def figures(engine: Engine, features: Any, labels: Any) -> dict[str, float]:
    """precision, recall and nDCG at 1, 3 and 5, as far as there are so many labels."""
    most = min(5, labels.shape[1])
    ids, found = best(engine, features, most)[0], {}
    for k in (1, 3, 5):
        if k <= most:
            for name, figure in (("precision", judge.precision), ("recall", judge.recall), ("ndcg", judge.ndcg)):
                found[f"{name}@{k}"] = figure(ids[:, :k], labels)
    return found


def best(engine: Engine, features: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k likeliest labels of each example, and their log-probabilities; features (n, F) CSR."""
    ids, log_probs = np.empty((features.shape[0], k), np.int32), np.empty((features.shape[0], k), np.float32)
    for first in range(0, features.shape[0], ASKED):
        part = slice(first, first + ASKED)
        some = features[part]
        ids[part], log_probs[part] = engine.best(ids=some.indices, bag_at=some.indptr, values=some.data, k=k)
    return ids, log_probs


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Figures on other examples, or on those that validated."""
    known = _labelled.kept(run.folder)
    if given["examples"]:
        asked = _read(given["examples"], run.options, known)
    else:
        _, _, asked = _parts(run.options)
    return {"examples": asked.features.shape[0], **figures(run.load(), *asked)}


class Use:
    """A run of labels: says which labels texts have.

    labels  names, by id
    """

    def __init__(self, run: Trained):
        self._known, self._options, self.engine = _labelled.kept(run.folder), run.options, run.load()
        self.labels = self._known.labels or [str(label) for label in range(self._known.classes)]

    def predict(self, texts: Sequence[str], k: int = 5) -> list[list[tuple[str, float]]]:
        """The k likeliest labels of each text with their probabilities, likeliest first.

        ValueError for one string instead of several, for k outside 1 to the number of labels, and where the run learned
        from features that have numbers and no words.
        """
        if isinstance(texts, str):
            raise ValueError("texts: found one string, expected a list of them")
        if self._known.words is None:
            raise ValueError("texts: the run learned from numbered features; ask model.engine.best")
        check.whole("k", k, 1, len(self.labels))
        features = _labelled.weighed(_labelled.cut(texts, self._options), self._known.words)
        ids, log_probs = best(self.engine, features, k)
        pairs = zip(ids.tolist(), np.exp(log_probs).tolist(), strict=True)
        return [[(self.labels[label], p) for label, p in zip(*one, strict=True)] for one in pairs]


def _parts(options: dict[str, Any]) -> tuple[Known, Examples, Examples]:
    """What is known, and the examples to learn from and to validate on."""
    path, found = options["examples"], _labelled.load(options["examples"], options)
    if options["valid"]:
        known = _labelled.learned(path, found, options)
        return known, _labelled.counted(found, known), _read(options["valid"], options, known)
    order = np.random.default_rng(options["seed"]).permutation(len(found))
    held = max(int(len(found) * options["valid_share"]), 1)
    if held == len(found):
        raise ValueError(f"{path}: found {len(found)} examples, expected at least 2: some validate")
    valid, train = (found.of(np.sort(part)) for part in np.split(order, [held]))
    known = _labelled.learned(path, train, options)
    return known, _labelled.counted(train, known), _labelled.counted(valid, known)


def _read(path: str, options: dict[str, Any], known: Known) -> Examples:
    return _labelled.counted(_labelled.load(path, options, known), known)
