"""The next word of Python's documentation, which every machine has: lower case, words that occur twice."""

from typing import Any

from bench.contender import Problem
from bench.problems._language import contenders
from hybrid.feeds.text import documentation
from hybrid.train.job import Watched


def make(arguments: Any) -> Problem:
    """Its paragraphs, each once; a tenth validates, a tenth tests."""
    parts = documentation().split(valid=0.1, test=0.1, seed=0)
    train, valid, test = (f"{sum(map(len, part)):,}" for part in parts)
    return Problem(
        f"Python's documentation, {train} tokens to learn from, {valid} to validate, {test} to test",
        Watched("perplexity"),
        contenders(arguments, {}, parts),
        epochs=(2, 4, 8),
    )
