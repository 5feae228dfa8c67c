"""Multi-label classification by linear label trees: texts as TF-IDF, or numbered features; hybrid/sparse_label_tree.py.

Texts become bags of words with weights of norm 1. The weight is the word count times log((1 + n) / (1 + d)) + 1, where d of the
n texts have the word. Features of LIBSVM's format are used unchanged. If --valid names no file, a fraction of the examples
validates. A step trains one tree, and the probabilities of all trees are averaged; a resumed run adds trees.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .. import check, machine, metrics
from ..feeds.arrays import digest
from ..feeds.text import TOKENS
from ..formats import fasttext, svm
from ..settings import number, option, positive
from ..sparse_label_tree import NodeSolver, SparseLabelTree
from ..storage import checkpoint, files
from ..train import store
from ..train.job import Job, Watched
from ..train.options import DATA, FILE
from ..train.runs import Trained

__all__ = ["CPU_ONLY", "FILES", "Evaluation", "Options", "Use", "complete", "evaluate", "load", "prepare"]

NAMES, WORDS = FILES = store.FILES["labels"]
CPU_ONLY = "label trees over sparse features have no dense part"
MOST = 100  # trees


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of `hybrid train labels`."""

    examples: str | None = option(None, "examples in the format of fastText or LIBSVM", needed=True, **DATA)
    valid: str | None = option(None, "validation examples (default: a tenth of --examples)", **DATA)
    tokens: str = option("words", "how texts are split into tokens", group="data", choices=("words", "whitespace"))
    min_count: int = option(1, "drop words that occur less often", group="data", type=positive)
    trees: int = option(3, f"label trees, whose probabilities are averaged, up to {MOST}", type=positive)
    C: float = option(10.0, "weight of the loss against the L2 penalty; lower is smoother", type=number)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `hybrid eval` on a run of labels."""

    examples: str | None = option(None, "test examples (default: the validation examples)", **FILE)


def complete(chosen: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    """Returns the options; ValueError for contradictory ones."""
    if not chosen["C"] > 0:
        raise ValueError(f"--C: found {chosen['C']}, expected a number above 0")
    return chosen


class Labels(Job):
    """The training on all examples except the validation ones; measures precision@1 after every tree."""

    unit, length, compiles = "tree", "trees", False
    watched = Watched("valid precision@1", lowest=False)
    feed: "Feed"

    def __init__(self, options: dict[str, Any]):
        if options["trees"] > MOST:
            raise ValueError(f"--trees: found {options['trees']}, expected at most {MOST}")
        self.options = options
        self.known, train, self._valid = _parts(options)
        self.feed = Feed(train, options["trees"], options["C"], options["seed"])
        self.data = _digest(self._valid)

    def make(self) -> "LabelTrees":
        """Returns a model without trees."""
        return LabelTrees(None, 0, self.options["threads"])

    def keep(self, folder: Path) -> None:
        """Writes the words and the names of the labels."""
        self.known.keep(folder)

    def begin(self, model: "LabelTrees", facts: dict[str, Any]) -> None:
        """Compiles the kernels on four examples, so that the clock of training has whole trees."""
        super().begin(model, facts)
        if model.tick == len(self.feed):
            return
        few = sparse.csr_array(np.eye(4, dtype=np.float32))
        with machine.kernel_threads(self.options["threads"] or machine.available()):
            SparseLabelTree(few, few)

    def ticks(self, model: "LabelTrees") -> Iterator[int]:
        """Trains one tree per tick; yields the number of examples that it learned from."""
        while model.tick < len(self.feed):
            model.grow(self.feed.examples, self.feed.C, self.feed.seed)
            yield self.feed.examples.features.shape[0]

    def note(self, tick: int, facts: dict[str, Any]) -> int:
        """Returns the number of examples; see `Job`."""
        return tick

    def measure(self, model: "LabelTrees", facts: dict[str, Any]) -> dict[str, Any]:
        """Returns precision@1 and nDCG@5 on the validation examples."""
        all_figures = figures(model, self._valid)
        return {f"valid {name}": all_figures[name] for name in ("precision@1", "ndcg@5") if name in all_figures}

    def final(self, model: "LabelTrees") -> dict[str, Any]:
        """Returns the numbers of examples, labels and weights."""
        examples = {"examples": self.feed.examples.features.shape[0], "valid examples": self._valid.features.shape[0]}
        return examples | {"labels": self.known.classes, "parameters": model.trees.weights if model.trees else 0}


prepare = Labels


class LabelTrees:
    """A model of label trees in training: `tick` of them are trained; trees is None before the first."""

    torn = None

    def __init__(self, trees: SparseLabelTree | None, tick: int, threads: int | None):
        self.trees, self.tick, self._threads = trees, tick, threads or machine.available()

    def grow(self, examples: "Examples", C: float, seed: int) -> None:
        """Trains one more tree, from the next seed."""
        with machine.kernel_threads(self._threads):
            made = SparseLabelTree(*examples, solver=NodeSolver(C), seed=seed + self.tick)
        if self.trees:
            self.trees.join(made)
        self.trees, self.tick = self.trees or made, self.tick + 1

    def best(self, features: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely labels of each example, see SparseLabelTree; ValueError before the first tree."""
        if self.trees is None:
            raise ValueError("the run has no tree yet; hybrid train --resume continues it")
        with machine.kernel_threads(self._threads):
            return self.trees.best(features, k)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Writes a checkpoint."""
        own = {"tick": self.tick}
        if self.trees:
            own |= {"features": self.trees.features, "labels": self.trees.labels}
        checkpoint.save(folder, self.trees.arrays if self.trees else {}, facts | {"label_trees": own})


def load(source: Path, options: dict[str, Any]) -> tuple[LabelTrees, dict[str, Any]]:
    """Returns the trees of a checkpoint, and the facts saved with it; ValueError, naming it, for another model."""
    arrays, facts = checkpoint.load(source)
    with checkpoint.rebuilding(source):
        own = facts["label_trees"]
        tick, trees = check.whole("tick", own["tick"], 0, MOST), None
        if tick:
            features, labels = check.whole("features", own["features"], 1), check.whole("labels", own["labels"], 2)
            trees = SparseLabelTree.of(arrays, features, labels)
        if len({name.partition(".")[0] for name in arrays}) != tick:
            raise ValueError(f"found other arrays than those of {tick} trees")
    return LabelTrees(trees, tick, options["threads"]), facts


@dataclasses.dataclass(frozen=True)
class Feed:
    """The training data of all trees; epochs is the number of trees."""

    examples: "Examples"
    epochs: int
    C: float
    seed: int
    ticks_per_epoch = 1

    def __len__(self) -> int:
        return self.epochs

    def describe(self) -> dict[str, Any]:
        """Returns the facts of the feed, with a digest of the examples."""
        return {"data": _digest(self.examples), "trees": self.epochs, "C": self.C, "seed": self.seed}


class Examples(NamedTuple):
    """A set of n examples: scipy CSR features (n, F) float32, labels (n, V)."""

    features: Any
    labels: Any


class Read(NamedTuple):
    """The content of a file.

    features  the tokens of each text; or scipy CSR (n, F)
    labels    the names of each text's labels; or scipy CSR (n, V)
    first     the number of the first feature in the file; None: texts
    """

    features: Any
    labels: Any
    first: int | None = None

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(self.features) if isinstance(self.features, list) else int(self.features.shape[0])

    def of(self, rows: np.ndarray) -> "Read":
        """Returns the selected examples."""
        if isinstance(self.features, list):
            return Read([self.features[row] for row in rows], [self.labels[row] for row in rows])
        return Read(self.features[rows], self.labels[rows], self.first)


class Known(NamedTuple):
    """The vocabulary of a run's examples.

    words     for texts: words and their weights; None: numbered features
    features  number of features
    labels    label names; None: numbered labels
    classes   number of labels
    first     the number of the first feature in files without a header; None: texts
    """

    words: dict[str, float] | None
    features: int
    labels: list[str] | None
    classes: int
    first: int | None = None

    @classmethod
    def learned(cls, path: str, found: Read, options: Mapping[str, Any]) -> "Known":
        """Collects the vocabulary of the training examples; ValueError if there is too little."""
        if not isinstance(found.features, list):
            known = cls(None, found.features.shape[1], None, found.labels.shape[1], found.first)
        else:
            words = _words(found.features, options["min_count"])
            names = sorted({name for own in found.labels for name in own})
            known = cls(words, len(words), names, len(names))
        if known.classes < 2 or not known.features:
            raise ValueError(
                f"{path}: found {known.classes} labels and {known.features} features, expected at least 2 and 1"
            )
        return known

    def keep(self, folder: Path) -> None:
        """Writes it into a run's folder."""
        store.write_json(folder / NAMES, {"labels": self.labels, "classes": self.classes})
        store.write_json(folder / WORDS, {"words": self.words, "features": self.features, "first": self.first})

    @classmethod
    def kept(cls, folder: Path) -> "Known":
        """Reads it from a run's folder."""
        labels, words = (files.read(folder / name) for name in (NAMES, WORDS))
        try:
            known = cls(**labels, **words)
            check.whole("classes", known.classes, 2)
            check.whole("features", known.features, 1)
            if known.first is not None:
                check.whole("first", known.first, 0, 1)
            named = known.labels is None or (files.words(known.labels) and len(known.labels) == known.classes)
            weights = {} if known.words is None else dict(known.words)
            if not named or not all(isinstance(weight, int | float) for weight in weights.values()):
                raise ValueError
        except (TypeError, ValueError):
            files_ = f"{folder / NAMES}, {WORDS}"
            raise ValueError(f"{files_}: not what a run of labels keeps; the files were altered") from None
        return known

    def matrices(self, found: Read) -> Examples:
        """Returns examples as matrices; unknown words and labels are omitted."""
        if self.words is None:
            return Examples(found.features, found.labels)
        place = {name: at for at, name in enumerate(self.labels or [])}
        rows = [{place[name]: 1.0 for name in own if name in place} for own in found.labels]
        return Examples(self.weighed(found.features), _csr(rows, self.classes))

    def weighed(self, texts: list[list[str]]) -> Any:
        """Returns bags of words: counts times weights, of norm 1; (n, F) CSR."""
        words = self.words or {}
        place = {word: at for at, word in enumerate(words)}
        rows = []
        for text in texts:
            counts = collections.Counter(word for word in text if word in place)
            row = {place[word]: count * words[word] for word, count in counts.items()}
            length = np.sqrt(sum(value * value for value in row.values()))
            rows.append({at: value / length for at, value in row.items()})
        return _csr(rows, len(place))


def _words(texts: list[list[str]], min_count: int) -> dict[str, float]:
    """Returns log((1 + n) / (1 + d)) + 1 for every word that d of the n texts have."""
    met = collections.Counter(word for text in texts for word in text)
    has = collections.Counter(word for text in texts for word in set(text))
    idf = np.log((1 + len(texts)) / (1 + np.array([has[word] for word in sorted(has)]))) + 1
    return {word: float(one) for word, one in zip(sorted(has), idf, strict=True) if met[word] >= min_count}


def _csr(rows: list[dict[int, float]], columns: int) -> Any:
    at = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    ids = np.array([place for row in rows for place in row], np.int32)
    values = np.array([value for row in rows for value in row.values()], np.float32)
    made = sparse.csr_array((values, ids, at), (len(rows), columns))
    made.sort_indices()
    return made


def _digest(examples: Examples) -> str:
    return digest(*(part for one in examples for part in (one.indptr, one.indices, one.data)))


def _read(path: str, options: Mapping[str, Any], known: Known | None = None) -> Read:
    """Reads a file of examples for the run with `known`, if any; ValueError and OSError as in hybrid.formats."""
    if svm.begins(path) if known is None else known.words is None:
        same = {"features": known.features, "labels": known.classes, "first": known.first} if known else {}
        return Read(*svm.load(path, **same))
    texts = fasttext.load(path)
    return Read(_cut(texts.texts, options), texts.labels)


def _cut(texts: Sequence[str], options: Mapping[str, Any]) -> list[list[str]]:
    """Returns the tokens of each text, in lower case."""
    tokens = TOKENS[options["tokens"]]
    return [tokens(text.lower()) for text in texts]


def _parts(options: dict[str, Any]) -> tuple[Known, Examples, Examples]:
    """Returns the vocabulary, the training examples, and the validation examples."""
    path, found = options["examples"], _read(options["examples"], options)
    if options["valid"]:
        known = Known.learned(path, found, options)
        return known, known.matrices(found), known.matrices(_read(options["valid"], options, known))
    order = np.random.default_rng(options["seed"]).permutation(found.examples)
    held = max(found.examples // 10, 1)
    if held == found.examples:
        raise ValueError(f"{path}: found {held} examples, expected at least 2: a part is for validation")
    valid, train = (found.of(np.sort(part)) for part in np.split(order, [held]))
    known = Known.learned(path, train, options)
    return known, known.matrices(train), known.matrices(valid)


def figures(model: LabelTrees, examples: Examples) -> dict[str, float]:
    """Returns precision, recall and nDCG at 1, 3 and 5, up to the number of labels."""
    cuts = [k for k in (1, 3, 5) if k <= examples.labels.shape[1]]
    ids = model.best(examples.features, cuts[-1])[0]
    asked = itertools.product(cuts, ("precision", "recall", "ndcg"))
    return {f"{name}@{k}": getattr(metrics, name)(ids[:, :k], examples.labels) for k, name in asked}


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures on other examples, or on the validation examples."""
    known, model = _opened(run)
    if given["examples"]:
        examples = known.matrices(_read(given["examples"], run.options, known))
    else:
        _, _, examples = _parts(run.options)
    return {"examples": examples.features.shape[0], **figures(model, examples)}


class Use:
    """A run of labels in use: predicts the labels of texts.

    labels  names, by id
    model   its `best(features, k)` ranks the labels of numbered features
    """

    def __init__(self, run: Trained):
        self._known, self.model = _opened(run)
        self._options = run.options
        self.labels = self._known.labels or [str(label) for label in range(self._known.classes)]

    def predict(self, texts: Sequence[str], k: int = 5) -> list[list[tuple[str, float]]]:
        """Returns the k most likely labels of each text with their probabilities, in descending order.

        Raises ValueError for one string instead of several, for k outside 1 to the number of labels, and if the run learned
        from numbered features instead of words.
        """
        check.no_table("texts", texts)
        if isinstance(texts, str):
            raise ValueError("texts: found one string, expected a list of them")
        if self._known.words is None:
            raise ValueError("texts: the run learned from numbered features; call model.best(features, k)")
        check.whole("k", k, 1, len(self.labels))
        ids, log_probs = self.model.best(self._known.weighed(_cut(texts, self._options)), k)
        pairs = zip(ids.tolist(), np.exp(log_probs).tolist(), strict=True)
        return [[(self.labels[label], p) for label, p in zip(*one, strict=True)] for one in pairs]


def _opened(run: Trained) -> tuple[Known, LabelTrees]:
    """Returns the vocabulary of a run, and its trees; ValueError if they are inconsistent."""
    known, model = Known.kept(run.folder), run.load()
    sizes = known.features, known.classes
    if model.trees and (found := (model.trees.features, model.trees.labels)) != sizes:
        raise ValueError(
            f"{run.source}: found trees of {found} features and labels, expected {sizes}; files of different runs were mixed"
        )
    return known, model
