"""Word vectors: skip-gram and CBOW over a tree or drawn negatives (Mikolov et al. 2013, arXiv:1301.3781, 1310.4546)."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import metrics
from ..engine import Engine
from ..feeds.pairs import PairFeed
from ..feeds.text import Corpus
from ..feeds.vocabulary import Vocabulary
from ..settings import number, option, positive
from ..train.job import Watched
from ..train.options import DATA
from ..train.runs import Trained
from ..use.vectors import Similar
from . import _engine
from ._engine import RATE, EngineOptions, load
from ._text import FILES, NAMES, TextJob, TextOptions, outputs, read_text, stored_text, vectors, vocabulary_of

__all__ = ["CPU_ONLY", "FILES", "Evaluation", "Options", "Use"]
__all__ += ["complete", "evaluate", "load", "outputs", "prepare", "vectors"]

CPU_ONLY = "word vectors have no dense part"


@dataclasses.dataclass(frozen=True)
class Options(TextOptions, EngineOptions):
    """Options of `hybrid train words`."""

    valid: str | None = option(None, "validation text (default: none)", **DATA)
    tokens: str = option("whitespace", "how text is split into tokens", group="data", choices=("words", "whitespace"))
    min_count: int = option(5, "drop words that occur less often", group="data", type=positive)
    model: str = option("skipgram", "word2vec model", choices=("skipgram", "cbow"))
    window: int = option(5, "maximum number of context words on each side", type=positive)
    sample: float = option(1e-3, "subsampling of frequent words (0: none)", type=number)
    width: int = option(100, "width of the vectors", type=positive)
    batch: int = option(  # 0: see batch_of
        0,
        "examples per batch (default: by vocabulary size, 32 to 16384)",
        group="training",
        type=positive,
    )
    micro_batches: int = option(1, "parts of a batch that overlap", group="training", type=positive)
    rate: float = option(0.025, "learning rate of the readout", by=("readout_optimiser", {}), **RATE)
    rows_rate: float = option(0.025, "learning rate of the vectors", by=("rows_optimiser", {}), **RATE)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `hybrid eval` on a run of word vectors."""

    similarity: list[str] | None = option(
        None, "word pairs with similarity scores, such as WordSim-353 or SimLex-999", action="append", metavar="FILE"
    )
    analogies: str | None = option(None, "analogies in the format of questions-words.txt", metavar="FILE")


class Words(TextJob):
    """The training of word vectors by an engine without a trunk: the row of a word is the hidden vector.

    A batch sums the updates of a row, so a row must not recur too often in it: the batch grows with the vocabulary.
    """

    def __init__(self, options: dict[str, Any]):
        learned = _learned(options)
        self.vocabulary = learned.vocabulary
        when, bags = update(options), "undivided" if options["model"] == "cbow" else None
        batch = options["batch"] or batch_of(len(self.vocabulary), when, options["readout"])
        feed = _feed(options, learned, batch, options["epochs"])
        super().__init__(options, feed, update=when, bags=bags, trunk=False)
        self._measured: PairFeed | None = None
        if options["valid"]:
            corpus = Corpus(read_text(options["valid"], options), self.vocabulary)
            measured = _feed(options, corpus, batch, 1)
            if measured.batch > feed.batch:  # subsampling keeps fewer validation words than training words
                measured = _feed(options, corpus, max(batch * feed.batch // (2 * measured.batch), 1), 1)
            self._measured, self.watched, self.data = measured, Watched("valid loss"), corpus.sha256

    def validate(self, model: Engine) -> dict[str, float]:
        """Returns the mean loss of the validation text in nats, if there is one: for losses on negatives, theirs."""
        if not self._measured:
            return {}
        drawn = self.options["readout"] in ("sampled", "neighbours") and self.options["loss"] != "softmax"
        return {"valid loss": model.evaluate(self._measured, drawn=drawn)}


def batch_of(words: int, update: str = "online", readout: str = "tree") -> int:
    """Returns the default batch size for a vocabulary of `words` words.

    An online batch is limited by the constancy of the rates. Otherwise the gradients of an input row are summed over the batch.
    Drawn negatives then give worse vectors from about 1,024 examples on (WikiText-2, WordSim-353: 0.351 with 512, 0.335 with
    4,096); a tree does not.
    """
    if update == "online":
        return min(max(words, 32), 16_384)
    share, most = (40, 512) if readout == "sampled" else (5, 4096)
    return min(max(words // share, 32), most)


prepare = Words


def complete(chosen: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    """Returns the options with dependent ones filled in; ValueError for contradictory ones."""
    if explicit.get("regrow"):
        raise ValueError("--regrow: not used by `train words`, which has no trunk; leave it out")
    return _engine.complete(chosen, explicit)


def update(options: Mapping[str, Any]) -> str:
    """Returns when rows move: "online", after each example, if the readout supports it and no option concerns batches.

    Such a readout uses plain SGD, without biases.
    """
    plain = options["readout_optimiser"] == "sgd" and not options["biases"]
    logistic = options["readout"] == "sampled" and options["loss"] in (None, "logistic")
    tree = options["readout"] == "tree" and options["mode"] == "deterministic"
    return "online" if plain and (logistic or tree) else "batch"


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the rank correlation with every --similarity file, and the accuracy on --analogies."""
    if not (given["similarity"] or given["analogies"]):
        raise ValueError("eval: word vectors are measured on --similarity FILE or --analogies FILE; found neither")
    names, rows = vectors(run)
    figures: dict[str, Any] = {}
    for path in given["similarity"] or ():
        agreement, name = metrics.agreement(path, names, rows), Path(path).stem
        figures |= {name: agreement.rho, f"{name}_unknown": agreement.unknown}
    if given["analogies"]:
        answered = metrics.analogies(given["analogies"], names, rows)
        for section in (answered.total, answered.semantic, answered.syntactic):
            accuracy = section.accuracy if section.asked else None
            figures |= {f"analogies_{section.name}": accuracy, f"analogies_{section.name}_asked": section.asked}
    return figures


class Use(Similar):
    """A run of word vectors in use."""

    def __init__(self, run: Trained):
        super().__init__(Vocabulary.load(run.folder / NAMES).words, run.load().embedding, "word")


def _learned(options: dict[str, Any]) -> Corpus:
    """Returns the training text, in memory or in files of --stream."""
    if options["stream"]:
        return stored_text(options, unknown=False)
    text = read_text(options["text"], options)
    return Corpus(text, vocabulary_of(text, options, unknown=False))


def _feed(options: dict[str, Any], corpus: Corpus, batch: int, epochs: int) -> PairFeed:
    names = ("model", "window", "sample", "seed")
    return PairFeed(corpus, mean_batch=batch, epochs=epochs, **{name: options[name] for name in names})
