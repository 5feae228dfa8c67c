"""Word vectors: skip-gram and CBOW over a tree or drawn negatives (Mikolov et al. 2013, arXiv:1301.3781, 1310.4546)."""

from pathlib import Path

import numpy as np

from ..engine import Engine
from ..feeds.pairs import PairFeed
from ..feeds.text import Corpus, read
from ..feeds.vocabulary import Vocabulary
from ..judge import similarity
from ..train.loop import Job
from ._engine import make_engine

NAMES = "vocabulary.json"


def prepare(options: dict) -> Job:
    """Text -> pairs and an engine without a trunk: the row of a word is the hidden vector.

    What a batch has to say of one row is summed, so a batch must not meet a row too often: it grows with the vocabulary.
    """
    text = read(options["text"], tokens=options["tokens"], lower=options.get("case") != "keep")
    vocabulary = Vocabulary.build(text, min_count=options["min_count"], unknown=False, source=text.source)
    feed = PairFeed(
        Corpus(text, vocabulary),
        model=options["model"],
        window=options["window"],
        sample=options["sample"],
        mean_batch=options["batch"] or min(max(len(vocabulary) // 5, 32), 4096),
        epochs=options["epochs"],
        seed=options["seed"],
    )

    def make() -> Engine:
        return make_engine(options, feed, mean=options["model"] == "cbow", trunk=False)

    return Job(feed, make, lambda engine: {})


def keep(job: Job, folder: Path) -> None:
    """Write the vocabulary."""
    job.feed.corpus.vocabulary.save(folder / NAMES)  # type: ignore[attr-defined]


def evaluate(folder: Path, options: dict, engine: Engine, given: dict) -> dict:
    """Rank correlation with every --similarity file, and the share of --analogies answered right."""
    if not (given["similarity"] or given["analogies"]):
        raise ValueError("eval: word vectors are measured on --similarity FILE or --analogies FILE; found neither")
    names, rows = vectors(folder, engine)
    figures: dict = {}
    for path in given["similarity"] or ():
        found = similarity.agreement(path, names, rows)
        figures |= {f"{Path(path).stem}": found.rho, f"{Path(path).stem}_unknown": found.unknown}
    if given["analogies"]:
        answered = similarity.analogies(given["analogies"], names, rows)
        for section in (answered.total, answered.semantic, answered.syntactic):
            accuracy = section.accuracy if section.asked else None
            figures |= {f"analogies_{section.name}": accuracy, f"analogies_{section.name}_asked": section.asked}
    return figures


def vectors(folder: Path, engine: Engine) -> tuple[list[str], np.ndarray]:
    """The words and their rows."""
    return Vocabulary.load(folder / NAMES).words, engine.embedding.table
