"""Labelled texts in fastText's format: one example a line, its labels marked by "__label__"."""

from pathlib import Path
from typing import NamedTuple

from ..storage import files

LABEL = "__label__"


class Labelled(NamedTuple):
    """N texts and their labels.

    texts   N strings, their tokens separated by one blank
    labels  N lists of names, without the mark
    """

    texts: list[str]
    labels: list[list[str]]


def load(path: str | Path) -> Labelled:
    """Reads a fastText file: the marked tokens of each line are its labels, all others its text.

    Empty lines are skipped. Raises OSError for an unreadable file; ValueError, with the line, for a mark without a name, for
    invalid UTF-8, and if no line has a label.
    """
    texts, labels = [], []
    for number, line in files.numbered_lines(path):
        tokens = line.split()
        if not tokens:
            continue
        if LABEL in tokens:
            raise ValueError(f"{path}, line {number}: the mark {LABEL} without a name; expected one after it")
        labels.append([token.removeprefix(LABEL) for token in tokens if token.startswith(LABEL)])
        texts.append(" ".join(token for token in tokens if not token.startswith(LABEL)))
    if not any(labels):
        raise ValueError(f"{path}: no line has a label; expected some, such as {LABEL}name")
    return Labelled(texts, labels)
