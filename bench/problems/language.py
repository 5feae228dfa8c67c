"""The next word of WikiText-2 as published: 33,278 words, case kept, <eos> at the end of every line."""

import functools
import itertools
from pathlib import Path
from typing import Any

from bench.contender import Problem
from bench.problems import there
from bench.problems._language import contenders
from hybrid.feeds.text import Text, read
from hybrid.train.job import Watched

FILES = ("train.txt", "valid.txt", "test.txt")
CUT: dict[str, Any] = {"tokens": "whitespace", "lower": False, "eos": True}
OPTIONS = {"tokens": "whitespace", "case": "keep", "eos": True, "min_count": 1}


def make(arguments: Any) -> Problem | None:
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
