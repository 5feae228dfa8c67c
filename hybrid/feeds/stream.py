"""Texts larger than memory: read piecewise, and stored as ids in memory-mapped files."""

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
from .text import Corpus, Text, lines_of, sentences
from .vocabulary import Vocabulary

__all__ = ["Lines", "StoredCorpus", "stored"]

FORMAT = "hybrid corpus 1"
IDS, AT, FACTS, WORDS = "ids.i32", "at.i64", "corpus.json", "vocabulary.json"  # in the folder of a corpus
PART = ".part"  # suffix of a corpus that is being written
TOKENS = 2**18  # tokens buffered before they are written
PIECE = 2**16  # positions, or bytes, that are checked together


def stored(
    path: "str | Path | Lines",
    folder: str | Path,
    *,
    tokens: str = "words",
    lower: bool = True,
    eos: bool = False,
    min_count: int = 1,
    unknown: bool = True,
) -> "StoredCorpus":
    """Returns the corpus of a text that need not fit into memory, in two passes: words are counted, then ids are written.

    path                 a UTF-8 text, one sentence a line, or a table, whose column "text" is read; for another column
                         Lines(path, column=NAME)
    folder               the folder of the ids, 4 bytes per token; created if missing. A stored corpus is reused if the text
                         (path, size, modification time) and the tokenisation are the same
    tokens, lower, eos   tokenisation, see `hybrid.Text`; with eos contexts cross lines
    min_count, unknown   of the vocabulary, see `hybrid.Vocabulary.build`

    Memory holds the distinct words of the text and one piece of it. Raises OSError for files that cannot be read or written;
    ValueError for anything but a text, a pipe, invalid UTF-8, or fewer than two words.
    """
    every = path if isinstance(path, Lines) else Lines(path)
    path, folder, column = Path(os.path.abspath(every.path)), Path(folder), every.column if every.table else None
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: not a file, and it is read twice; expected a text or a Parquet file")
    settings = {"tokens": tokens, "lower": lower, "eos": eos}
    words: dict[str, object] = {"min_count": min_count, "unknown": unknown}
    target = folder / f"{path.stem[: files.MOST]}-{_key(path, settings | words | {'column': column or TEXT})}"
    folder.mkdir(parents=True, exist_ok=True)
    with lock.turn(folder):  # a second process waits, then finds the corpus
        if not (target / FACTS).exists():
            counted, written = (
                Text(Lines(path, column=column, every=eos, label=label), source=str(path), **settings)  # type: ignore[arg-type]
                for label in ("counting words", "writing ids")
            )
            vocabulary = Vocabulary.build(counted, source=str(path), **words)  # type: ignore[arg-type]
            _make(target, written, vocabulary, running=eos)
    return StoredCorpus(target)


def _key(path: Path, settings: dict[str, object]) -> str:
    """Returns the key of a text in its present state and with one tokenisation."""
    seen = path.stat()
    facts = [FORMAT, str(path), seen.st_size, seen.st_mtime_ns, settings]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _make(target: Path, text: Text, vocabulary: Vocabulary, *, running: bool) -> None:
    """Writes a corpus atomically: its folder is complete or absent."""
    part = target.with_name(f".{target.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)  # left by a killed process: this one holds the lock
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
    """True if a folder stores corpora: it has at least one, or only unfinished ones."""
    folder = Path(folder)
    if not folder.is_dir():
        return False
    return all(entry.name.endswith(PART) for entry in folder.iterdir()) or any(folder.glob(f"*/{FACTS}"))


class StoredCorpus(Corpus):
    """A Corpus from a folder that `write` wrote. It is read once completely, since kernels index with the ids.

    Raises OSError for missing files, and ValueError for corrupt ones.
    """

    def __init__(self, folder: Path):
        self.vocabulary = Vocabulary.load(folder / WORDS)
        try:
            self.sha256 = str(files.read(folder / FACTS)["sha256"])
            self.ids = np.memmap(folder / IDS, np.int32, "r")
            self.at = np.memmap(folder / AT, np.int64, "r")
            digest = hashlib.sha256(self.vocabulary.sha256.encode())
            for name in (IDS, AT):
                _add(digest, folder / name)
            sound = digest.hexdigest() == self.sha256 and self._sound()
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise ValueError(f"{folder}: damaged; remove the folder to build it again")

    def _sound(self) -> bool:
        """True if the ids are in the vocabulary and the offsets ascend from 0 to the end; a digest may be forged."""
        for start in range(0, len(self.at) - 1, PIECE):
            piece = self.at[start : start + PIECE + 1]
            if not (piece[1:] > piece[:-1]).all():
                return False
        ends = self.at[0] == 0 and self.at[-1] == len(self.ids)
        return bool(ends and self.ids.min() >= 0 and self.ids.max() < len(self.vocabulary))


def write(folder: Path, text: Iterable[Sequence[str]], vocabulary: Vocabulary, *, running: bool) -> None:
    """Writes the ids of a text to files in `folder`, by sentence, or as one if `running`, so that contexts cross its lines.

    Raises ValueError if no token of the text is in the vocabulary; OSError for files that cannot be written.
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


# Files with a column of texts, and their field separators
TABLES = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}
TEXT = "text"  # the default column of texts


class Lines:
    """The sentences of a file, read piecewise; a re-iterable.

    The file is a text, with lines as in `hybrid.text.read`, or a table with a column of texts: Parquet, recognised by its first
    bytes, or, by its suffix, CSV or TSV with a header, or JSON objects, one per line. Missing texts are skipped.

    column the name of the column; None: "text"
    every  True: empty lines are also sentences, and long ones stay whole, as for a text with eos
    label  label of the progress bar; None: no bar
    table  attribute: the suffix of a table, "" for a text; a pipe, which can be read once, is not opened

    Iteration raises ValueError, with the line, for a binary or non-UTF-8 text, a damaged table, a missing column or a missing
    pyarrow. Construction and iteration raise OSError for an unreadable file.
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
        csv.field_size_limit(files.LONGEST)  # process-wide: it bounds memory, and a document may be long
        rows = csv.reader((f"{line}\n" for _, line in self._numbered()), delimiter=TABLES[self.table], strict=True)
        try:
            names = next(rows, [])
            self._expect_column(names)
            place = names.index(self.column)
            for row in filter(None, rows):
                if len(row) != len(names):
                    raise csv.Error(f"{len(row)} fields, expected {len(names)} as in the header")
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
                raise ValueError(
                    f"{self.path}, line {number}: not JSON ({error}); expected one object per line"
                ) from None
            if not isinstance(row, dict) or not isinstance(row.get(self.column, ""), str | None):
                kind = type(row.get(self.column)).__name__ if isinstance(row, dict) else None
                found = f"{kind} as {self.column!r}" if kind else "no object"
                raise ValueError(f"{self.path}, line {number}: found {found}, expected a text; --columns NAME")
            if number == 1:
                self._expect_column(list(row))
            yield row.get(self.column)

    def _numbered(self) -> Iterator[tuple[int, str]]:
        with self._bar(self.path.stat().st_size, "B") as bar:
            for number, line in files.numbered_lines(self.path):
                yield number, line
                bar.update(len(line) + 1)

    def _expect_column(self, names: Sequence[str], other: str = "") -> None:
        """Raises ValueError unless there is one such column, and it holds texts."""
        times = names.count(self.column)
        if times != 1 or other:
            raise ValueError(
                f"{self.path}: {self.column!r}: {other or str(times or 'no') + ' such column'}; found"
                f" {', '.join(map(repr, names))}; expected one of texts, --columns NAME"
            )
