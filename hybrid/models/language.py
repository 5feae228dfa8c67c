"""A neural language model: the rows of the words before -> MLP -> a distribution over the next word (Bengio et al. 2003)."""

import math
from pathlib import Path

import numpy as np

from ..engine import Engine
from ..feeds.language import LanguageFeed
from ..feeds.text import Corpus, Text, read
from ..feeds.vocabulary import Vocabulary
from ..train.loop import Job
from ._engine import make_engine

NAMES = "vocabulary.json"


def prepare(options: dict) -> Job:
    """Text -> feeds and an engine; validates on --valid, or on a tenth of the lines, and tests on --test."""
    test = options.get("test")
    return job_of(options, *_texts(options), _read(test, options) if test else None)


def job_of(options: dict, train: Text, valid: Text, test: Text | None = None) -> Job:
    """What learns from one text, is measured on another and, once it has learned, on a third."""
    vocabulary = Vocabulary.build(train, min_count=options["min_count"], source=train.source)
    sizes = {"context": options["context"], "batch": options["batch"]}
    feed = LanguageFeed(_corpus(train, vocabulary), **sizes, epochs=options["epochs"], seed=options["seed"])
    measured = measured_feed(options, valid, vocabulary)

    def make() -> Engine:
        return make_engine(options, feed, per_example=options["context"])

    def final(engine: Engine) -> dict:
        about = {"text": train.source, "tokens": len(feed.corpus), "words": len(vocabulary)}
        about |= {"valid": valid.source, "valid_tokens": len(measured.corpus)}
        if test:
            tested = measured_feed(options, test, vocabulary)
            about |= {
                "test": test.source,
                "test_tokens": len(tested.corpus),
                "test_perplexity": perplexity(engine, tested),
            }
        return about

    def valid_perplexity(engine: Engine) -> dict:
        return {"perplexity": perplexity(engine, measured)}

    return Job(feed, make, valid_perplexity, final=final, data=measured.corpus.sha256)


def measured_feed(options: dict, text: Text, vocabulary: Vocabulary) -> LanguageFeed:
    """A text in its own order, once."""
    corpus = _corpus(text, vocabulary)
    return LanguageFeed(corpus, context=options["context"], batch=options["batch"], shuffle=False)


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
    text = _read(given["text"], options) if given["text"] else _texts(options)[1]
    feed = measured_feed(options, text, vocabulary)
    if not given["text"] and options.get("data") not in (None, feed.corpus.sha256):  # None: a run of before it was kept
        raise ValueError(
            f"{text.source}: not the validation text that {folder} was trained with; give the text as it was, or say with "
            "--text FILE what to measure on"
        )
    return {
        "text": text.source,
        "tokens": len(feed.corpus),
        "unknown": float((feed.corpus.ids == vocabulary.unknown).mean()),
        "perplexity": perplexity(engine, feed),
    }


def vectors(folder: Path, engine: Engine) -> tuple[list[str], np.ndarray]:
    """The words and their input rows."""
    names = Vocabulary.load(folder / NAMES).words
    return names, engine.embedding.parameters()["table"][: len(names)]


def _corpus(text: Text, vocabulary: Vocabulary) -> Corpus:
    """The ids of a text; one whose lines end with "<eos>" is a running text, and contexts reach over its lines."""
    corpus = Corpus(text, vocabulary)
    return Corpus.from_ids(corpus.ids, vocabulary) if text.eos else corpus


def _texts(options: dict) -> tuple[Text, Text]:
    if options["valid"]:
        return _read(options["text"], options), _read(options["valid"], options)
    parts = _read(options["text"], options).split(seed=options["seed"])
    return parts.train, parts.valid


def _read(path, options: dict) -> Text:
    """A file as the options cut it; runs of before `case` and `eos` were options have neither."""
    lower, eos = options.get("case") != "keep", bool(options.get("eos"))
    return read(path, tokens=options["tokens"], lower=lower, eos=eos)
