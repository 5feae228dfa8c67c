"""A neural language model: the rows of the preceding words -> MLP -> a distribution over the next word (Bengio et al. 2003)."""

import dataclasses
import math
from typing import Any

from ..engine import Engine
from ..feeds.language import LanguageFeed
from ..feeds.text import Corpus, Text
from ..feeds.vocabulary import Vocabulary
from ..readout import registry as readout_kinds
from ..settings import option, positive
from ..train.job import Watched
from ..train.options import DATA
from ..train.runs import Trained
from ..use.language import LanguageModel
from . import _engine
from ._engine import DenseOptions, load
from ._text import FILES, NAMES, TextJob, TextOptions, how_cut, outputs, read_text, stored_text, vectors, vocabulary_of

__all__ = ["FILES", "TUNED", "Evaluation", "Options", "Use"]
__all__ += ["complete", "evaluate", "load", "outputs", "prepare", "vectors"]

RANKS = True
CHUNK = 2**20  # tokens of a streamed text that are shuffled together
MANY = 10_000  # words from which on a sampled softmax, exact only at the cost of a full one, is measured once an epoch


@dataclasses.dataclass(frozen=True)
class Options(TextOptions, DenseOptions):
    """Options of `hybrid train language`."""

    valid: str | None = option(None, "validation text (default: a tenth of --text)", **DATA)
    test: str | None = option(None, "test text, measured once at the end", **DATA)
    tokens: str = option("words", "how text is split into tokens", group="data", choices=("words", "whitespace"))
    eos: bool = option(
        False,
        "end lines with <eos>, and let contexts cross lines; WikiText: with --tokens whitespace --case keep --min-count 1",
        group="data",
    )
    min_count: int = option(2, "replace words that occur less often by <unk>", group="data", type=positive)
    context: int = option(4, "words before the target", type=positive)
    readout: str = option("sampled", "the output layer", registry=readout_kinds)
    epochs: int = option(4, "passes over the data", group="training", type=positive)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `hybrid eval` on a run of a language model."""

    text: str | None = option(None, "measure perplexity on this text (default: the validation text)", metavar="FILE")


# A tree learns example by example, a softmax from the sum over a micro-batch.
TUNED = {name: {"trunk_rate": 0.05} for name in ("full", "sampled", "neighbours", "head")}
TUNED |= {name: {"trunk_rate": 0.2} for name in ("tree", "mixture")}


class Language(TextJob):
    """The training of a language model on one text, with validation on another and a final test on a third."""

    rows_are_classes = True

    def __init__(self, options: dict[str, Any], train: Text, valid: Text, test: Text | None = None):
        feed = _learned(options, train)
        self.vocabulary = feed.corpus.vocabulary
        self._train, self._valid, self._test = train, valid, test
        self._measured = measured_feed(options, valid, self.vocabulary)
        data = self._measured.corpus.sha256
        if options["readout"] == "sampled" and len(self.vocabulary) > MANY:
            self.evaluations = 1
        super().__init__(options, feed, watched=Watched("perplexity"), data=data, per_example=options["context"])

    def validate(self, model: Engine) -> dict[str, float]:
        """Returns the perplexity of the validation text."""
        return {"perplexity": perplexity(model, self._measured)}

    def final(self, model: Engine) -> dict[str, Any]:
        """Returns the facts of the training data, and the perplexity of the test text."""
        about = {"text": self._train.source, "tokens": len(self.feed.corpus), "words": len(self.vocabulary)}
        about |= {"valid": self._valid.source, "valid_tokens": len(self._measured.corpus)}
        if self._test:
            tested = measured_feed(self.options, self._test, self.vocabulary)
            about |= {"test": self._test.source, "test_tokens": len(tested.corpus)}
            about |= {"test_perplexity": perplexity(model, tested)}
        return about


def prepare(options: dict[str, Any]) -> Language:
    """Makes feeds of the text; validates on --valid, or on a tenth of the lines, and tests on --test."""
    return Language(options, *_texts(options), read_text(options["test"], options) if options["test"] else None)


def complete(chosen: dict[str, Any], explicit: dict[str, Any]) -> dict[str, Any]:
    """Returns the options with dependent ones filled in; ValueError for contradictory ones."""
    if chosen["stream"] and not chosen["valid"]:
        raise ValueError("--stream: needs --valid FILE, a validation text: none is drawn from a streamed text")
    if chosen.get("loss") not in (None, "softmax"):
        raise ValueError(f"--loss {chosen['loss']}: learns no probabilities, which perplexity measures; leave it out")
    return _engine.complete(chosen, explicit)


def _learned(options: dict[str, Any], train: Text) -> LanguageFeed:
    """Returns the training feed: a text in memory, or the chunks of one in files of --stream."""
    sizes = {name: options[name] for name in ("context", "batch", "epochs", "seed")}
    if options["stream"]:
        return LanguageFeed(stored_text(options, unknown=True), chunk=CHUNK, **sizes)
    vocabulary = vocabulary_of(train, options, unknown=True)
    return LanguageFeed(_corpus(train, vocabulary), **sizes)


def measured_feed(options: dict[str, Any], text: Text, vocabulary: Vocabulary) -> LanguageFeed:
    """Returns one pass over a text in its own order."""
    corpus = _corpus(text, vocabulary)
    return LanguageFeed(corpus, context=options["context"], batch=options["batch"], seed=None)


def perplexity(engine: Engine, feed: LanguageFeed) -> float:
    """Returns exp of the mean loss; infinite on overflow."""
    loss = engine.evaluate(feed)
    return math.exp(loss) if loss < 700 else math.inf


def evaluate(run: Trained, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the perplexity on --text, or on the run's own validation text."""
    vocabulary, options = Vocabulary.load(run.folder / NAMES), run.options
    text = read_text(given["text"], options) if given["text"] else _texts(options)[1]
    feed = measured_feed(options, text, vocabulary)
    if not given["text"] and options.get("data") != feed.corpus.sha256:
        raise ValueError(f"{text.source}: not the validation text of {run.folder}; restore it, or give --text FILE")
    model, unknown = run.load(), float((feed.corpus.ids == vocabulary.unknown).mean())
    about = {"text": text.source, "tokens": len(feed.corpus), "unknown": unknown}
    return about | {"perplexity": perplexity(model, feed)} | _engine.readout_figures(model)


class Use(LanguageModel):
    """A run of a language model in use; texts are tokenised as in training."""

    def __init__(self, run: Trained):
        super().__init__(run.load(), Vocabulary.load(run.folder / NAMES), **how_cut(run.options))


def _corpus(text: Text, vocabulary: Vocabulary) -> Corpus:
    """Returns the ids of a text; one with "<eos>" line ends is a running text, and contexts cross its lines."""
    corpus = Corpus(text, vocabulary)
    return Corpus.from_ids(corpus.ids, vocabulary) if text.eos else corpus


def _texts(options: dict[str, Any]) -> tuple[Text, Text]:
    if options["valid"]:
        path = options["text"]
        train = Text([], source=path) if options["stream"] else read_text(path, options)  # streamed: only its name
        return train, read_text(options["valid"], options)
    parts = read_text(options["text"], options).split(seed=options["seed"])
    return parts.train, parts.valid
