"""A neural language model: the rows of the words before -> MLP -> a distribution over the next word (Bengio et al. 2003)."""

import math
from pathlib import Path

import numpy as np

from ..engine import Engine
from ..feeds.language import LanguageFeed
from ..feeds.text import Corpus, Text, documentation, read
from ..training import Job
from ..vocabulary import Vocabulary
from . import make_engine

NAMES = "vocabulary.json"


def prepare(options: dict) -> Job:
    """Text -> feeds and an engine; validates on --valid, or on a tenth of the lines."""
    train, valid = _texts(options)
    vocabulary = Vocabulary.build(train, min_count=options["min_count"], source=train.source)
    sizes = {"context": options["context"], "batch": options["batch"]}
    feed = LanguageFeed(Corpus(train, vocabulary), **sizes, epochs=options["epochs"], seed=options["seed"])
    measured = LanguageFeed(Corpus(valid, vocabulary), **sizes, shuffle=False)

    def make() -> Engine:
        return make_engine(options, feed, per_example=options["context"])

    return Job(feed, make, lambda engine: {"perplexity": perplexity(engine, measured)})


def perplexity(engine: Engine, feed) -> float:
    """exp of the mean loss; infinite where it cannot be written as a float."""
    loss = engine.evaluate(feed)
    return math.exp(loss) if loss < 700 else math.inf


def keep(job: Job, folder: Path) -> None:
    """Write the vocabulary."""
    job.feed.corpus.vocabulary.save(folder / NAMES)  # type: ignore[attr-defined]


def evaluate(folder: Path, options: dict, engine: Engine, given: dict) -> dict:
    """Perplexity on --text, or on the run's own validation text."""
    vocabulary = Vocabulary.load(folder / NAMES)
    text = read(given["text"], tokens=options["tokens"]) if given["text"] else _texts(options)[1]
    corpus = Corpus(text, vocabulary)
    feed = LanguageFeed(corpus, context=options["context"], batch=options["batch"], shuffle=False)
    unknown = vocabulary.unknown
    return {
        "text": text.source,
        "tokens": len(corpus),
        "unknown": float((corpus.ids == unknown).mean()),
        "perplexity": perplexity(engine, feed),
    }


def vectors(folder: Path, engine: Engine) -> tuple[list[str], np.ndarray]:
    """The words and their input rows."""
    names = Vocabulary.load(folder / NAMES).words
    return names, engine.embedding.parameters()["table"][: len(names)]


def _texts(options: dict) -> tuple[Text, Text]:
    if not options["text"]:
        parts = documentation().split(seed=options["seed"])
        return parts.train, parts.valid
    text = read(options["text"], tokens=options["tokens"])
    if options["valid"]:
        return text, read(options["valid"], tokens=options["tokens"])
    parts = text.split(seed=options["seed"])
    return parts.train, parts.valid
