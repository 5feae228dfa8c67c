"""Texts with labels, as fastText reads them: a line an example, its labels marked by "__label__"."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..storage import files
from .lines import numbered

LABEL = "__label__"


class Labelled(NamedTuple):
    """N texts and their labels.

    texts   N strings, their tokens separated by one blank
    labels  N lists of names, without the mark
    """

    texts: list[str]
    labels: list[list[str]]


def load(path: str | Path, *, label: str = LABEL) -> Labelled:
    """Read a file of fastText: of each line the tokens that begin with the mark are its labels, all others its text.

    label  the mark

    Empty lines are left out. Raises OSError for an unreadable file; ValueError, with the line, for a mark without a name,
    for what is not UTF-8, and where no line has a label.
    """
    texts, labels = [], []
    for number, line in numbered(path):
        tokens = line.split()
        if not tokens:
            continue
        if label in tokens:
            raise ValueError(f"{path}, line {number}: the mark {label} without a name; expected one after it")
        labels.append([token[len(label) :] for token in tokens if token.startswith(label)])
        texts.append(" ".join(token for token in tokens if not token.startswith(label)))
    if not any(labels):
        raise ValueError(f"{path}: no line has a label; expected some, such as {label}name")
    return Labelled(texts, labels)


def save(path: str | Path, texts: Sequence[str], labels: Sequence[Sequence[str]], *, label: str = LABEL) -> None:
    """Write a file that fastText and `load` read. It appears whole or, on any error, stays as it was.

    texts   N strings without line ends and without words that begin with the mark
    labels  N lists of names without white space

    Raises ValueError for anything else, and for an example with neither text nor label; OSError for a file that cannot be
    written.
    """
    if len(texts) != len(labels):
        raise ValueError(f"found {len(texts)} texts and {len(labels)} lists of labels, expected as many of both")
    lines = [_line(place, *example, label) for place, example in enumerate(zip(texts, labels, strict=True))]
    files.write(path, _written(lines))


def _line(place: int, text: str, names: Sequence[str], label: str) -> str:
    if isinstance(names, str):
        raise ValueError(f"labels[{place}]: found the string {names!r}, expected a list of names")
    for name in names:
        if not name or name.split() != [name]:
            raise ValueError(f"labels[{place}]: found {name!r}, expected names without white space")
    if len(text.splitlines()) > 1 or any(word.startswith(label) for word in text.split()):
        raise ValueError(
            f"texts[{place}]: found {text[:40]!r}, expected one line without words that begin with {label}"
        )
    if not names and not text.strip():
        raise ValueError(f"texts[{place}]: found neither text nor labels, which cannot be told from an empty line")
    return " ".join([*(label + name for name in names), text])


def _written(lines: Sequence[str]) -> Iterator[bytes]:
    for line in lines:
        yield f"{line}\n".encode()
