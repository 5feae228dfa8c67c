"""The sentences of a file, one after another: of a text in UTF-8, or of a column of a Parquet file."""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ... import console
from ...storage import parquet
from ..text import LONGEST, chunks, pieces, sentences

PIECE = 2**20  # bytes of a text that are in memory at a time
ENDLESS = 2**27  # characters of a line that has to stay whole


class Lines:
    """The lines of a text as `hybrid.text.read` gives them, of which a piece is in memory at a time.

    every  empty lines are sentences too, and long ones stay whole, as a text with eos has them
    label  of the progress bar; None: there is none
    """

    def __init__(self, path: Path, every: bool, label: str | None = None):
        self.path, self.every, self.label = path, every, label

    def __iter__(self) -> Iterator[str]:
        """Raises OSError for an unreadable file; ValueError, with the line, for one that is binary or not UTF-8."""
        number, rest = 1, ""
        for piece in self._decoded():
            *whole, rest = (rest + piece).split("\n")
            for line in whole:
                yield from sentences(line, self.every)
            number += len(whole)
            if self.every and len(rest) > ENDLESS:
                raise ValueError(
                    f"{self.path}, line {number}: more than {ENDLESS:,} characters; expected lines of text"
                )
            if not self.every and len(rest) > 2 * LONGEST:
                *whole, rest = pieces(rest)
                yield from whole
        if rest:
            yield from sentences(rest, self.every)

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        at = 0
        with _bar(self.path.stat().st_size, self.label, "B") as bar:
            for piece in chunks(self.path, PIECE):
                try:
                    yield decoder.decode(piece)
                except UnicodeDecodeError:
                    raise self._not_utf8(f"near byte {at}") from None
                at += len(piece)
                bar.update(len(piece))
        try:
            yield decoder.decode(b"", True)
        except UnicodeDecodeError:
            raise self._not_utf8("at its end") from None

    def _not_utf8(self, where: str) -> ValueError:
        return ValueError(
            f"{self.path}: not UTF-8 {where}; expected UTF-8 text; convert the file with iconv -f latin1 -t utf-8"
        )


class Column:
    """The texts of a column of a Parquet file, each cut into lines; what is missing is left out. See `Lines`."""

    def __init__(self, path: Path, column: str, every: bool, label: str | None = None):
        self.path, self.column, self.every, self.label = path, column, every, label

    def __iter__(self) -> Iterator[str]:
        """Raises ValueError for a file that is damaged or has no such column of texts, and where pyarrow is missing."""
        file = self._opened()
        with _bar(file.metadata.num_rows, self.label, "rows") as bar:
            for (texts,) in parquet.columns(self.path, file, [self.column]):
                for text in texts:
                    if text is not None:
                        for line in text.removesuffix("\n").split("\n"):
                            yield from sentences(line, self.every)
                    bar.update()

    def _opened(self) -> Any:
        file = parquet.opened(self.path)
        names = file.schema_arrow.names
        kind = file.schema_arrow.field(self.column).type if names.count(self.column) == 1 else None
        if kind is None or not parquet.is_text(kind):
            found = f"{names.count(self.column) or 'no'} such column" if kind is None else f"a column of {kind}"
            raise ValueError(
                f"{self.path}: {self.column!r}: {found}; found {', '.join(map(repr, names))}; expected one of texts,"
                " --columns NAME"
            )
        return file


def lines(path: str | Path, *, column: str = "text", every: bool = False, label: str | None = None) -> "Lines | Column":
    """The sentences of a file: of a column of a Parquet file, else of a text; they can be gone through again and again.

    Raises OSError for an unreadable file.
    """
    path = Path(path)
    return Column(path, column, every, label) if _is_table(path) else Lines(path, every, label)


def _is_table(path: Path) -> bool:
    """Whether it begins as a Parquet file does; a pipe, which can be read once, is not asked."""
    if path.exists() and not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _bar(total: int, label: str | None, unit: str) -> Any:
    return console.bar(total, label or "", unit, passing=label is None, scaled=True)
