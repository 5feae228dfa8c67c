"""Texts larger than memory: read by pieces, and kept as ids in files that are mapped into memory."""

import csv
import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .. import console
from ..storage import files, lock, tables
from .language import StreamedLanguageFeed
from .text import Corpus, Text, lines_of, sentences
from .vocabulary import Vocabulary

__all__ = ["Lines", "StoredCorpus", "StreamedLanguageFeed", "stored"]

FORMAT = "hybrid corpus 1"
IDS, AT, FACTS, WORDS = "ids.i32", "at.i64", "corpus.json", "vocabulary.json"  # in the folder of a corpus
PART = ".part"  # the end of the name of a corpus that is being written
TOKENS = 2**18  # that are collected before they are written
PIECE = 2**16  # places, or bytes, that are checked at a time


def stored(
    path: "str | Path | Lines",
    folder: str | Path,
    *,
    tokens: str = "words",
    lower: bool = True,
    eos: bool = False,
    min_count: int = 1,
    unknown: bool = True,
    ties: str = "name",
) -> "StoredCorpus":
    """The corpus of a text that need not fit into memory, which takes two passes over it: words are counted, ids written.

    path                 a text in UTF-8, one sentence a line, or a table, of which the column "text" is read; of another
                         column Lines(path, column=NAME)
    folder               where the ids are kept, 4 bytes a token; made if need be. What is there of a text that has not changed
                         since (path, size, time of change), cut in the same way, is used again
    tokens, lower, eos   how sentences are cut into tokens, see `hybrid.Text`; with eos contexts reach over lines
    min_count, unknown, ties  of the vocabulary, see `hybrid.Vocabulary.build`

    Memory holds the different words of the text, and a piece of it. Raises OSError for files that cannot be read or written;
    ValueError for a text that is none, a pipe, not UTF-8, or has fewer than two words.
    """
    every = path if isinstance(path, Lines) else Lines(path)
    path, folder, column = Path(os.path.abspath(every.path)), Path(folder), every.column if every.table else None
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: not a file, and it is read twice; expected a text or a Parquet file")
    settings = {"tokens": tokens, "lower": lower, "eos": eos}
    words: dict[str, object] = {"min_count": min_count, "unknown": unknown}
    words |= {} if ties == "name" else {"ties": ties}  # what was kept before there was a choice is used again
    target = folder / f"{path.stem[: files.MOST]}-{_key(path, settings | words | {'column': column or TEXT})}"
    folder.mkdir(parents=True, exist_ok=True)
    with lock.turn(folder):  # a second process waits, and finds it there
        if not (target / FACTS).exists():
            counted, written = (
                Text(Lines(path, column=column, every=eos, label=label), source=str(path), **settings)  # type: ignore[arg-type]
                for label in ("counting words", "writing ids")
            )
            vocabulary = Vocabulary.build(counted, source=str(path), **words)  # type: ignore[arg-type]
            _make(target, written, vocabulary, running=eos)
    return StoredCorpus(target)


def _key(path: Path, settings: dict[str, object]) -> str:
    """A name for a text as it is now, cut in one way."""
    seen = path.stat()
    facts = [FORMAT, str(path), seen.st_size, seen.st_mtime_ns, settings]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _make(target: Path, text: Text, vocabulary: Vocabulary, *, running: bool) -> None:
    """Write a corpus so that its folder is there whole or not at all."""
    part = target.with_name(f".{target.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed: this one has the turn
    part.mkdir()
    try:
        write(part, text, vocabulary, running=running)
        for file in part.iterdir():
            files.settle_file(file)
        os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    files.settle(target.parent)


def kept_in(folder: str | Path) -> bool:
    """Whether a folder is one for corpora: it has some, or nothing but such as are not whole yet."""
    folder = Path(folder)
    if not folder.is_dir():
        return False
    return all(entry.name.endswith(PART) for entry in folder.iterdir()) or any(folder.glob(f"*/{FACTS}"))


class StoredCorpus(Corpus):
    """What `write` wrote to a folder, as a Corpus. All of it is read once: kernels go where the ids say.

    Raises OSError for files that are missing, and ValueError for such as are not what was written.
    """

    def __init__(self, folder: Path):
        self.vocabulary = Vocabulary.load(folder / WORDS)
        try:
            self.sha256 = str(files.read(folder / FACTS)["sha256"])
            self.ids = np.memmap(folder / IDS, np.int32, "r")
            self.at = np.memmap(folder / AT, np.int64, "r")
            sound = self._digest(folder) == self.sha256 and self._sound()
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise ValueError(f"{folder}: damaged; remove the folder, and it is made again")

    def _digest(self, folder: Path) -> str:
        digest = hashlib.sha256(self.vocabulary.sha256.encode())
        for name in (IDS, AT):
            _add(digest, folder / name)
        return digest.hexdigest()

    def _sound(self) -> bool:
        """Whether the ids are of words, and the places go up from the first token to the last; a digest may be forged too."""
        for start in range(0, len(self.at) - 1, PIECE):
            piece = self.at[start : start + PIECE + 1]
            if not (piece[1:] > piece[:-1]).all():
                return False
        ends = self.at[0] == 0 and self.at[-1] == len(self.ids)
        return bool(ends and self.ids.min() >= 0 and self.ids.max() < len(self.vocabulary))


def write(folder: Path, text: Iterable[Sequence[str]], vocabulary: Vocabulary, *, running: bool) -> None:
    """Write the ids of a text to files in `folder`, sentence by sentence.

    running  the text is one sentence, so that contexts reach over its lines

    Raises ValueError where no token of the text is in the vocabulary; OSError for files that cannot be written.
    """
    vocabulary.save(folder / WORDS)
    digest = hashlib.sha256(vocabulary.sha256.encode())
    tokens = 0
    with open(folder / IDS, "xb") as ids, open(folder / AT, "xb") as at:
        at.write(np.int64(0).tobytes())
        parts, ends, held = [], array("q"), 0
        for sentence in text:
            encoded = vocabulary.encode(sentence)
            if not len(encoded):
                continue
            tokens, held = tokens + len(encoded), held + len(encoded)
            parts.append(encoded)
            if not running:
                ends.append(tokens)
            if held >= TOKENS:
                _flush(ids, at, parts, ends, digest)
                held = 0
        _flush(ids, at, parts, array("q", [tokens]) if running else ends, digest)
    if not tokens:
        raise ValueError("text: none of its words is in the vocabulary; expected a text in the same language")
    _add(digest, folder / AT)
    (folder / FACTS).write_text(json.dumps({"sha256": digest.hexdigest()}) + "\n")


def _flush(ids: BinaryIO, at: BinaryIO, parts: list[np.ndarray], ends: "array[int]", digest: "hashlib._Hash") -> None:
    """Write what was collected, and forget it."""
    if parts:
        piece = np.concatenate(parts)
        ids.write(piece.data)
        digest.update(piece.data)
    at.write(ends.tobytes())
    parts.clear()
    del ends[:]


def _add(digest: "hashlib._Hash", path: Path) -> None:
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)


TABLES = {
    ".csv": ",",
    ".tsv": "\t",
    ".jsonl": "",
    ".ndjson": "",
}  # files with a column of texts, and what separates fields
TEXT = "text"  # the column of texts, where the user does not say


class Lines:
    """The sentences of a file, of which a piece is in memory at a time: the lines of a text as `hybrid.text.read` gives them,
    or of a column of texts, without such as are missing, of a Parquet file, of a CSV or TSV table with a header, or of JSON
    objects, one a line, which the ends of names tell. They can be gone through again and again.

    column the name of the column; None: "text"
    every  empty lines are sentences too, and long ones stay whole, as a text with eos has them
    label  of the progress bar; None: there is none
    table  attribute: the end of the name of a table, "" for a text; a pipe, which can be read once, is not asked

    Iterating raises ValueError, with the line, for a text that is binary or not
    UTF-8, and for a table that is damaged or has no such column of texts, and where pyarrow is missing; both raise OSError for
    an unreadable file.
    """

    def __init__(self, path: str | Path, *, column: str | None = None, every: bool = False, label: str | None = None):
        self.path, self.column, self.every, self.label = Path(path), column or TEXT, every, label
        self.table = ""
        if self.path.is_file() or not self.path.exists():
            ending = self.path.suffix.lower()
            with open(path, "rb") as file:
                self.table = ".parquet" if file.read(4) == b"PAR1" else ending * (ending in TABLES)
        if column and not self.table:
            raise ValueError(
                f"{self.path}: a text without columns, found --columns {column}; leave it out; tables are .parquet and what"
                f" ends with {', '.join(TABLES)}"
            )

    def __iter__(self) -> Iterator[str]:
        if not self.table:
            with self._bar(self.path.stat().st_size, "B") as bar:
                yield from lines_of(self.path, self.every, bar.update)
            return
        texts = {".parquet": self._of_parquet, "": self._of_json}.get(TABLES.get(self.table, self.table), self._of_csv)
        for text in texts():
            if text is not None:
                for line in text.removesuffix("\n").split("\n"):
                    yield from sentences(line, self.every)

    def _bar(self, total: int, unit: str) -> Any:
        return console.bar(total, self.label or "", unit, passing=self.label is None, scaled=True)

    def _of_parquet(self) -> Iterator[str | None]:
        file = tables.open_parquet(self.path)
        names = file.schema_arrow.names
        kind = file.schema_arrow.field(self.column).type if names.count(self.column) == 1 else None
        self._expect_column(names, "" if kind is None or tables.is_text(kind) else f"a column of {kind}")
        with self._bar(file.metadata.num_rows, "rows") as bar:
            for (texts,) in tables.parquet_columns(self.path, file, [self.column]):
                for text in texts:
                    yield text
                    bar.update()

    def _of_csv(self) -> Iterator[str | None]:
        csv.field_size_limit(files.LONGEST)  # of the process: it bounds memory, and a document may be long
        rows = csv.reader((f"{line}\n" for _, line in self._numbered()), delimiter=TABLES[self.table], strict=True)
        try:
            names = next(rows, [])
            self._expect_column(names)
            place = names.index(self.column)
            for row in filter(None, rows):
                if len(row) != len(names):
                    raise ValueError(
                        f"{self.path}, line {rows.line_num}: {len(row)} fields, expected {len(names)} as in the header"
                    )
                yield row[place]
        except csv.Error as error:
            raise ValueError(f"{self.path}, line {rows.line_num}: {error}; expected a table with a header") from None

    def _of_json(self) -> Iterator[str | None]:
        for number, line in self._numbered():
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number}: not JSON ({error}); expected an object a line") from None
            if not isinstance(row, dict) or not isinstance(row.get(self.column, ""), str | None):
                found = (
                    f"{type(row.get(self.column)).__name__} as {self.column!r}"
                    if isinstance(row, dict)
                    else "no object"
                )
                raise ValueError(
                    f"{self.path}, line {number}: found {found}, expected a text; --columns NAME says which"
                )
            if number == 1:
                self._expect_column(list(row))
            yield row.get(self.column)

    def _numbered(self) -> Iterator[tuple[int, str]]:
        with self._bar(self.path.stat().st_size, "B") as bar:
            for number, line in files.numbered_lines(self.path):
                yield number, line
                bar.update(len(line) + 1)

    def _expect_column(self, names: Sequence[str], other: str = "") -> None:
        """ValueError unless there is one such column, and it is no other than one of texts."""
        times = names.count(self.column)
        if times != 1 or other:
            raise ValueError(
                f"{self.path}: {self.column!r}: {other or str(times or 'no') + ' such column'}; found"
                f" {', '.join(map(repr, names))}; expected one of texts, --columns NAME"
            )
