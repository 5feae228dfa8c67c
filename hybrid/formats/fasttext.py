"""Labelled texts in fastText's format: one example a line, its labels marked by "__label__"."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import check
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


def save(path: str | Path, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
    """Writes a file that fastText and `load` read. It is written atomically; on any error the old file stays.

    texts   N strings without line ends and without words that start with the mark
    labels  N lists of names without white space

    Raises ValueError for anything else, and for an example with neither text nor label; OSError for a file that cannot be
    written.
    """
    check.no_table("texts", texts)
    if len(texts) != len(labels):
        raise ValueError(f"found {len(texts)} texts and {len(labels)} lists of labels, expected as many of both")
    files.write(path, [_line(place, *example) for place, example in enumerate(zip(texts, labels, strict=True))])


def _line(place: int, text: str, names: Sequence[str]) -> bytes:
    if isinstance(names, str):
        raise ValueError(f"labels[{place}]: found the string {names!r}, expected a list of names")
    for name in names:
        if not name or name.split() != [name]:
            raise ValueError(f"labels[{place}]: found {name!r}, expected names without white space")
    if len(text.splitlines()) > 1 or any(word.startswith(LABEL) for word in text.split()):
        raise ValueError(f"texts[{place}]: found {text[:40]!r}, expected one line without words beginning with {LABEL}")
    if not names and not text.strip():
        raise ValueError(f"texts[{place}]: found neither text nor labels, which cannot be told from an empty line")
    return f"{' '.join([*(LABEL + name for name in names), text])}\n".encode()
