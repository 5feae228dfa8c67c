"""Any number of labels an example, by linear label trees: texts as TF-IDF, or numbered features; hybrid/sparse_label_tree.py.

Texts become bags of words with weights of length 1: how often a word occurs times log((1 + n) / (1 + d)) + 1, where d of the n
texts have it. Features of LIBSVM's format are taken as they are. Where --valid names no file, a share of the examples
validates. A step trains one tree, and the probabilities of all trees are averaged; so a run goes on with more trees.
"""

import collections
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import check, machine, metrics
from ..feeds.arrays import digest
from ..feeds.text import TOKENS
from ..formats import fasttext, svm
from ..settings import number, option, positive
from ..sparse_label_tree import SparseLabelTree
from ..storage import checkpoint, files
from ..train.job import Job, Watched
from ..train.runs import Trained
from ..train.store import write_json

# Examples with any number of labels, from files: texts become weighted bags of words, numbered features stay as they are.

NAMES, WORDS = FILES = ("labels.json", "words.json")


class Found(NamedTuple):
    """What a file holds.

    features  the tokens of each text; or scipy CSR (n, F)
    labels    the names of each text's labels; or scipy CSR (n, V)
    """

    features: Any
    labels: Any

    def __len__(self) -> int:
        return len(self.features) if isinstance(self.features, list) else int(self.features.shape[0])

    def of(self, rows: np.ndarray) -> "Found":
        """Some examples."""
        if isinstance(self.features, list):
            return Found([self.features[row] for row in rows], [self.labels[row] for row in rows])
        return Found(self.features[rows], self.labels[rows])


class Known(NamedTuple):
    """What a run knows of its examples.

    words     of texts, and what each counts for; None: features have numbers
    features  how many there are
    labels    their names; None: they have numbers
    classes   how many labels there are
    """

    words: dict[str, float] | None
    features: int
    labels: list[str] | None
    classes: int


class Examples(NamedTuple):
    """n examples: scipy CSR features (n, F) float32, labels (n, V)."""

    features: Any
    labels: Any


def read_examples(path: str, options: Mapping[str, Any], known: Known | None = None) -> Found:
    """A file of examples; known: of the run that it is read for. ValueError and OSError as hybrid.formats raises them."""
    if options["format"] == "svm":
        read = svm.load(path, features=known and known.features, labels=known and known.classes)
        return Found(read.features, read.labels)
    texts = fasttext.load(path)
    return Found(cut(texts.texts, options), texts.labels)


def cut(texts: Sequence[str], options: Mapping[str, Any]) -> list[list[str]]:
    """The tokens of each text, in lower case."""
    tokens = TOKENS[options["tokens"]]
    return [tokens(text.lower()) for text in texts]


def learned(path: str, found: Found, options: Mapping[str, Any]) -> Known:
    """What there is to know of the examples to learn from; ValueError where it is too little."""
    if options["format"] == "svm":
        known = Known(None, found.features.shape[1], None, found.labels.shape[1])
    else:
        words = _words(found.features, options["min_count"])
        names = sorted({name for own in found.labels for name in own})
        known = Known(words, len(words), names, len(names))
    if known.classes < 2 or not known.features:
        raise ValueError(
            f"{path}: found {known.classes} labels and {known.features} words or features, expected at least 2 and 1"
        )
    return known


def _words(texts: list[list[str]], min_count: int) -> dict[str, float]:
    """log((1 + n) / (1 + d)) + 1 of every word that d of the n texts have."""
    met = collections.Counter(word for text in texts for word in text)
    has = collections.Counter(word for text in texts for word in set(text))
    idf = np.log((1 + len(texts)) / (1 + np.array([has[word] for word in sorted(has)]))) + 1
    return {word: float(one) for word, one in zip(sorted(has), idf, strict=True) if met[word] >= min_count}


def counted(found: Found, known: Known) -> Examples:
    """As matrices; words and labels that are not known are left out."""
    if known.words is None:
        return Examples(found.features, found.labels)
    place = {name: at for at, name in enumerate(known.labels or [])}
    rows = [{place[name]: 1.0 for name in own if name in place} for own in found.labels]
    return Examples(weighed(found.features, known.words), _csr(rows, known.classes))


def weighed(texts: list[list[str]], words: Mapping[str, float]) -> Any:
    """Bags of words: counts times weights, of length 1; (n, F) CSR."""
    place = {word: at for at, word in enumerate(words)}
    rows = []
    for text in texts:
        counts = collections.Counter(word for word in text if word in place)
        row = {place[word]: count * words[word] for word, count in counts.items()}
        length = np.sqrt(sum(value * value for value in row.values()))
        rows.append({at: value / length for at, value in row.items()})
    return _csr(rows, len(place))


def _csr(rows: list[dict[int, float]], columns: int) -> Any:
    from scipy import sparse

    at = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    ids = np.array([place for row in rows for place in row], np.int32)
    made = sparse.csr_array(
        (np.array([v for row in rows for v in row.values()], np.float32), ids, at), (len(rows), columns)
    )
    made.sort_indices()
    return made


def keep(folder: Path, known: Known) -> None:
    """Write what is known into a run's folder."""
    write_json(folder / NAMES, {"labels": known.labels, "classes": known.classes})
    write_json(folder / WORDS, {"words": known.words, "features": known.features})


def kept(folder: Path) -> Known:
    """What a run's folder tells."""
    labels, words = (files.read(folder / name) for name in (NAMES, WORDS))
    try:
        known = Known(**labels, **words)
        check.whole("classes", known.classes, 2)
        check.whole("features", known.features, 1)
        fits = known.labels is None or (files.words(known.labels) and len(known.labels) == known.classes)
        counts = {} if known.words is None else dict(known.words)
        if not fits or not all(isinstance(count, int | float) for count in counts.values()):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"{folder / NAMES}, {WORDS}: not what a run of labels keeps; the files were altered") from None
    return known


__all__ = ["CPU_ONLY", "FILES", "Evaluation", "Options", "Use", "complete", "evaluate", "load", "prepare"]

CPU_ONLY = "label trees over sparse features have no dense part"
MOST = 100  # trees


@dataclasses.dataclass(frozen=True)
class Options:
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
    trees: int = option(3, f"label trees, whose probabilities are averaged, up to {MOST}", type=positive)
    C: float = option(10.0, "what the loss counts against the size of the weights: less is smoother", type=number)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Of `hybrid eval` on a run of labels."""

    examples: str | None = option(
        None, "examples to measure on (default: those that validated)", type=os.path.abspath, metavar="FILE"
    )


class LabelTrees:
    """Label trees under way: `tick` of them are trained; trees is None before the first."""

    torn = None

    def __init__(self, trees: SparseLabelTree | None, tick: int, threads: int | None):
        self.trees, self.tick, self._threads = trees, tick, threads or machine.available()

    def grow(self, examples: Examples, C: float, seed: int) -> None:
        """Train one more tree, from the seed that follows."""
        with machine.kernel_threads(self._threads):
            made = SparseLabelTree(*examples, C=C, seed=seed + self.tick)
        if self.trees:
            self.trees.join(made)
        self.trees, self.tick = self.trees or made, self.tick + 1

    def best(self, features: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely labels of each example, see SparseLabelTree; ValueError before the first tree."""
        if self.trees is None:
            raise ValueError("the run has no tree yet; hybrid train --resume goes on with it")
        with machine.kernel_threads(self._threads):
            return self.trees.best(features, k)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write a checkpoint."""
        own = {"tick": self.tick}
        if self.trees:
            own |= {"features": self.trees.features, "labels": self.trees.labels}
        checkpoint.save(folder, self.trees.arrays if self.trees else {}, facts | {"label_trees": own})


@dataclasses.dataclass(frozen=True)
class Feed:
    """What all trees learn from; epochs is how many there are."""

    examples: Examples
    epochs: int
    C: float
    seed: int
    ticks_per_epoch = 1

    def __len__(self) -> int:
        return self.epochs

    def describe(self) -> dict[str, Any]:
        """Facts of the feed, with a digest of the examples."""
        return {"data": _digest(self.examples), "trees": self.epochs, "C": self.C, "seed": self.seed}


@dataclasses.dataclass(frozen=True)
class Grown:
    """A finished step: how many examples the tree learned from."""

    examples: int


class Labels(Job):
    """Examples, less those that validate; validated by precision@1 after every tree."""

    unit, length = "tree", "trees"
    watched = Watched("valid precision@1", lowest=False)
    feed: Feed

    def __init__(self, options: dict[str, Any]):
        if not 0 < options["valid_share"] < 1:
            raise ValueError(f"--valid-share: found {options['valid_share']}, expected a share between 0 and 1")
        if options["trees"] > MOST:
            raise ValueError(f"--trees: found {options['trees']}, expected at most {MOST}")
        if not options["C"] > 0:
            raise ValueError(f"--C: found {options['C']}, expected a number above 0")
        self.options = options
        self.known, train, self._valid = _parts(options)
        self.feed = Feed(train, options["trees"], options["C"], options["seed"])
        self.data = _digest(self._valid)

    def make(self) -> LabelTrees:
        """A model without trees."""
        return LabelTrees(None, 0, self.options["threads"])

    def keep(self, folder: Path) -> None:
        """Write the words and the names of the labels."""
        keep(folder, self.known)

    def ticks(self, model: LabelTrees) -> Iterator[Grown]:
        """A tree each."""
        while model.tick < len(self.feed):
            model.grow(self.feed.examples, self.feed.C, self.feed.seed)
            yield Grown(self.feed.examples.features.shape[0])

    def note(self, tick: Grown, facts: dict[str, Any]) -> int:
        """See `Job`."""
        return tick.examples

    def measure(self, model: LabelTrees, facts: dict[str, Any]) -> dict[str, Any]:
        """precision@1 and nDCG@5 of the examples that validate."""
        found = figures(model, *self._valid)
        return {f"valid {name}": found[name] for name in ("precision@1", "ndcg@5") if name in found}

    def final(self, model: LabelTrees) -> dict[str, Any]:
        """How many examples, labels and weights there are."""
        return {
            "examples": self.feed.examples.features.shape[0],
            "valid examples": self._valid.features.shape[0],
            "labels": self.known.classes,
            "parameters": model.trees.weights if model.trees else 0,
        }


def prepare(options: dict[str, Any]) -> Labels:
    """Files of examples -> features and labels."""
    return Labels(options)


def complete(chosen: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The options; ValueError for those that contradict each other."""
    if said.get("valid") and said.get("valid_share"):
        raise ValueError("--valid and --valid-share contradict each other: both say who validates; leave one out")
    return chosen


def load(source: Path, options: dict[str, Any]) -> tuple[LabelTrees, dict[str, Any]]:
    """The trees of a checkpoint, and the facts saved with it; ValueError, naming it, for one of no such model."""
    arrays, facts = checkpoint.load(source)
    with checkpoint.told(source):
        own = facts["label_trees"]
        tick, trees = check.whole("tick", own["tick"], 0, MOST), None
        if tick:
            features, labels = check.whole("features", own["features"], 1), check.whole("labels", own["labels"], 2)
            trees = SparseLabelTree.of(arrays, features, labels)
        if len({name.partition(".")[0] for name in arrays}) != tick:
            raise ValueError(f"found other arrays than those of {tick} trees")
    return LabelTrees(trees, tick, options.get("threads")), facts


def figures(model: LabelTrees, features: Any, labels: Any) -> dict[str, float]:
    """precision, recall and nDCG at 1, 3 and 5, as far as there are so many labels."""
    most = min(5, labels.shape[1])
    ids, found = model.best(features, most)[0], {}
    for k in (1, 3, 5):
        if k <= most:
            for name, figure in (("precision", metrics.precision), ("recall", metrics.recall), ("ndcg", metrics.ndcg)):
                found[f"{name}@{k}"] = figure(ids[:, :k], labels)
    return found


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Figures on other examples, or on those that validated."""
    known, model = _opened(run)
    if given["examples"]:
        asked = _read(given["examples"], run.options, known)
    else:
        _, _, asked = _parts(run.options)
    return {"examples": asked.features.shape[0], **figures(model, *asked)}


class Use:
    """A run of labels: says which labels texts have.

    labels  names, by id
    model   its `best(features, k)` ranks the labels of numbered features
    """

    def __init__(self, run: Trained):
        self._known, self.model = _opened(run)
        self._options = run.options
        self.labels = self._known.labels or [str(label) for label in range(self._known.classes)]

    def predict(self, texts: Sequence[str], k: int = 5) -> list[list[tuple[str, float]]]:
        """The k likeliest labels of each text with their probabilities, likeliest first.

        ValueError for one string instead of several, for k outside 1 to the number of labels, and where the run learned
        from features that have numbers and no words.
        """
        if isinstance(texts, str):
            raise ValueError("texts: found one string, expected a list of them")
        if self._known.words is None:
            raise ValueError("texts: the run learned from numbered features; ask model.best(features, k)")
        check.whole("k", k, 1, len(self.labels))
        features = weighed(cut(texts, self._options), self._known.words)
        ids, log_probs = self.model.best(features, k)
        pairs = zip(ids.tolist(), np.exp(log_probs).tolist(), strict=True)
        return [[(self.labels[label], p) for label, p in zip(*one, strict=True)] for one in pairs]


def _opened(run: Trained) -> tuple[Known, LabelTrees]:
    """What a run knows, and its trees; ValueError where these do not belong together."""
    known, model = kept(run.folder), run.load()
    sizes = known.features, known.classes
    if model.trees and (model.trees.features, model.trees.labels) != sizes:
        raise ValueError(
            f"{run.source}: found trees of {model.trees.features} features and {model.trees.labels} labels, expected"
            f" {sizes[0]} and {sizes[1]}; files of two runs were mixed"
        )
    return known, model


def _digest(examples: Examples) -> str:
    return digest(*(part for one in examples for part in (one.indptr, one.indices, one.data)))


def _parts(options: dict[str, Any]) -> tuple[Known, Examples, Examples]:
    """What is known, and the examples to learn from and to validate on."""
    path, found = options["examples"], read_examples(options["examples"], options)
    if options["valid"]:
        known = learned(path, found, options)
        return known, counted(found, known), _read(options["valid"], options, known)
    order = np.random.default_rng(options["seed"]).permutation(len(found))
    held = max(int(len(found) * options["valid_share"]), 1)
    if held == len(found):
        raise ValueError(f"{path}: found {len(found)} examples, expected at least 2: some validate")
    valid, train = (found.of(np.sort(part)) for part in np.split(order, [held]))
    known = learned(path, train, options)
    return known, counted(train, known), counted(valid, known)


def _read(path: str, options: dict[str, Any], known: Known) -> Examples:
    return counted(read_examples(path, options, known), known)
