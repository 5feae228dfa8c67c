"""The command `hybrid predict`: labels of texts, one text per line, in fastText's output format."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator

from ...formats.fasttext import LABEL
from ...settings import positive
from ...storage import files
from ..arguments import Parser
from . import _use

TEXTS = 1024  # texts per batch


def add(command: Parser) -> None:
    """Adds the options."""
    _use.add_run(command)
    command.add_argument("file", metavar="FILE", help="texts, one a line; -: from standard input")
    command.add_argument("--k", type=positive, default=1, metavar="K", help="labels of each text (default: 1)")
    command.add_argument("--probabilities", action="store_true", help="after each label its probability")


def run(given: argparse.Namespace) -> int:
    """Prints the most likely labels of every line; an empty line gives an empty line."""
    model = _use.opened(given, "predict", "predict labels")
    k = _use.at_most(given.k, len(model.labels), "labels")
    lines = _lines(given.file)
    while texts := list(itertools.islice(lines, TEXTS)):
        for text, pairs in zip(texts, model.predict(texts, k), strict=True):
            found = pairs if text else []
            if given.json:
                print(json.dumps([{"label": label, "probability": p} for label, p in found]))
                continue
            parts = (f"{LABEL}{label} {p:.6g}" if given.probabilities else LABEL + label for label, p in found)
            print(" ".join(parts))
    return 0


def _lines(path: str) -> Iterator[str]:
    """Yields the texts, without any labels in them."""
    for _, line in enumerate(sys.stdin) if path == "-" else files.numbered_lines(path):
        yield " ".join(token for token in line.split() if not token.startswith(LABEL))
