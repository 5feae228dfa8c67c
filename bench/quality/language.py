"""Language models that contend: one trunk under every readout."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.quality.contender import TRUNK, Contender, Figures, Log, Problem, contender, sparse, there
from hybrid.feeds.text import Text, documentation, read
from hybrid.models import language
from hybrid.train.job import Watched

READOUTS: dict[str, dict[str, Any]] = {
    "full softmax": {"readout": "full"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    "head clusters by counts": {"readout": "head"},
    "head of softmaxes": {"readout": "head", "tails": "softmax"},
    "head of softmaxes 0.03": {"readout": "head", "tails": "softmax", "share": 0.03},
    "mixture of trees": {"readout": "mixture"},
    "sampled 1024 log-uniform": {"readout": "sampled", "negatives": 1024, "draws": "log-uniform"},
    **{f"sampled {negatives}": {"readout": "sampled", "negatives": negatives} for negatives in (64, 1024, 4096)},
}
ROWS = Log(0.05, 0.5)


def contenders(
    arguments: Any, options: Mapping[str, Any], texts: Sequence[Text], part: Text | None = None
) -> dict[str, Contender]:
    """By name. texts: to learn from, to validate, to test; part: what a search learns from, None: all of it."""
    train, valid, test = texts

    def job(learned: Text, options: dict[str, Any]) -> language.Language:
        return language.Language(options, learned, valid, test)

    shared = {"text": "-", "device": "cpu", "threads": arguments.threads} | dict(options)
    found = {}
    for name, readout in READOUTS.items():
        space = sparse(readout["readout"], ROWS) | TRUNK
        on_all, on_part = (functools.partial(job, text) if text else None for text in (train, part))
        assert on_all
        found[name] = contender("language", shared | readout, space, on_all, tested, small=on_part)
    return found


def tested(job: language.Language, model: Any) -> Figures:
    """Perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}


# The next word of Python's documentation, which every machine has: lower case, words that occur twice.


def make_documentation(arguments: Any) -> Problem:
    """Its paragraphs, each once; a tenth validates, a tenth tests."""
    parts = documentation().split(valid=0.1, test=0.1, seed=0)
    train, valid, test = (f"{sum(map(len, part)):,}" for part in parts)
    return Problem(
        f"Python's documentation, {train} tokens to learn from, {valid} to validate, {test} to test",
        Watched("perplexity"),
        contenders(arguments, {}, parts),
        epochs=(2, 4, 8),
    )


# The next word of WikiText-2 as published: 33,278 words, case kept, <eos> at the end of every line.

FILES = ("train.txt", "valid.txt", "test.txt")
CUT: dict[str, Any] = {"tokens": "whitespace", "lower": False, "eos": True}
OPTIONS = {"tokens": "whitespace", "case": "keep", "eos": True, "min_count": 1}


def make_language(arguments: Any) -> Problem | None:
    """With --part the search learns from so many of the first tokens, of which it makes the vocabulary too."""
    found = texts()
    if found is None:
        return None
    part = first(found[0], arguments.part) if arguments.part else None
    small = f"the first {sum(map(len, part)):,} tokens of it" if part else None
    return Problem(
        "WikiText-2 as published",
        Watched("perplexity"),
        contenders(arguments, OPTIONS, found, part),
        epochs=(1, 2),
        small=small and f"WikiText-2 as published, {small}",
    )


def texts() -> list[Text] | None:
    """To learn from, to validate, to test; None where they are not there."""
    folder = there("wikitext-2")
    return [_text(folder / file) for file in FILES] if folder else None


@functools.cache
def _text(path: Path) -> Text:
    return read(path, **CUT)


def first(text: Text, tokens: int) -> Text:
    """Its first lines, as few as hold so many tokens."""
    counted = itertools.accumulate(map(len, text))
    lines = next((number for number, sum_ in enumerate(counted, 1) if sum_ >= tokens), len(text.sentences))
    return Text(text.sentences[:lines], **CUT, source=text.source)
