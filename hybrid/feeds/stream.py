"""Texts larger than memory: read by pieces, kept as ids in files, and learned from chunk by chunk."""

import codecs
import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .. import check, console
from ..storage import files, lock, tables
from . import Batch, Epochs
from .text import LONGEST, Corpus, Text, chunks, expect_corpus, pieces, sentences
from .vocabulary import Vocabulary

# A corpus whose ids are in files, of which the system keeps in memory what is being used.

IDS, AT, FACTS = "ids.i32", "at.i64", "corpus.json"
WORDS = "vocabulary.json"
TOKENS = 2**18  # that are collected before they are written
PIECE = 2**16  # places, or bytes, that are checked at a time


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
            found = vocabulary.encode(sentence)
            if not len(found):
                continue
            tokens, held = tokens + len(found), held + len(found)
            parts.append(found)
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


# Contexts of words, and the word that follows each, of a text that is gone through chunk by chunk.


class StreamedLanguageFeed(Epochs):
    """Every token of a corpus is a target; its input is the `context` tokens before it. A `Feed`.

    Chunks come in the order of the text; within one the tokens are shuffled. Memory holds the order of one chunk, and the
    files of a `StoredCorpus` are read from the first to the last once an epoch.

    corpus   the text
    context  tokens before a target that are its input. At the start of a sentence some are missing; row V stands for them
    chunk    tokens that are shuffled together, rounded up to whole batches
    batch    examples of a batch; the last one of an epoch may have fewer
    epochs   how often the text is gone through
    seed     the order of a chunk is a permutation drawn from (seed, epoch, chunk)
    shuffle  False: the order of the text; batches are then those of `LanguageFeed`

    Raises ValueError for anything but a Corpus, and for sizes below 1.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        context: int = 4,
        chunk: int = 2**20,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ):
        expect_corpus(corpus)
        for name, value in (("context", context), ("chunk", chunk), ("batch", batch), ("epochs", epochs)):
            check.whole(name, value, 1)
        check.whole("seed", seed, 0)
        super().__init__(epochs, -(-len(corpus) // batch))
        self.corpus, self.context, self.batch, self.seed, self.shuffle = corpus, context, batch, seed, shuffle
        self.chunk = -(-chunk // batch) * batch
        self.most_ids = batch * context
        self.classes = len(corpus.vocabulary)
        self.rows = self.classes + 1
        self.counts = corpus.vocabulary.counts
        self._order: tuple[int, int, np.ndarray] = (-1, -1, np.empty(0, np.int64))

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        names = ("context", "chunk", "batch", "epochs", "seed", "shuffle")
        return {"kind": "streamed language", "data": self.corpus.sha256} | {name: getattr(self, name) for name in names}

    def _cut(self, epoch: int, tick: int) -> Batch:
        chunk, first = divmod(tick * self.batch, self.chunk)
        if self._order[:2] != (epoch, chunk):
            self._order = epoch, chunk, self._drawn(epoch, chunk)
        at = self._order[2][first : first + self.batch]
        begins = self.corpus.at[np.searchsorted(self.corpus.at, at, "right") - 1]  # of the sentence of each
        places = at[:, None] + np.arange(-self.context, 0)
        ids = self.corpus.ids[np.maximum(places, 0)]
        ids[places < begins[:, None]] = self.classes
        return Batch(np.asarray(ids).reshape(-1), None, np.asarray(self.corpus.ids[at]))

    def _drawn(self, epoch: int, chunk: int) -> np.ndarray:
        """The tokens of a chunk in the order of an epoch."""
        first = chunk * self.chunk
        size = min(self.chunk, len(self.corpus) - first)
        if not self.shuffle:
            return np.arange(first, first + size)
        return first + np.random.default_rng([self.seed, epoch, chunk]).permutation(size)


# The sentences of a file, one after another: of a text in UTF-8, or of a column of a Parquet file.

TEXT_PIECE = 2**20  # bytes of a text that are in memory at a time
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
            for piece in chunks(self.path, TEXT_PIECE):
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
            for (texts,) in tables.parquet_columns(self.path, file, [self.column]):
                for text in texts:
                    if text is not None:
                        for line in text.removesuffix("\n").split("\n"):
                            yield from sentences(line, self.every)
                    bar.update()

    def _opened(self) -> Any:
        file = tables.open_parquet(self.path)
        names = file.schema_arrow.names
        kind = file.schema_arrow.field(self.column).type if names.count(self.column) == 1 else None
        if kind is None or not tables.is_text(kind):
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


# Stored corpora in a folder that the user names: made when first asked for, used again until the text changes.

FORMAT = "hybrid corpus 1"
PART = ".part"  # the end of the name of a corpus that is being written


def stored(
    path: str | Path,
    folder: str | Path,
    *,
    tokens: str = "words",
    lower: bool = True,
    eos: bool = False,
    min_count: int = 1,
    unknown: bool = True,
    ties: str = "name",
    column: str = "text",
) -> StoredCorpus:
    """The corpus of a text that need not fit into memory, which takes two passes over it: words are counted, ids written.

    path                 a text in UTF-8, one sentence a line, or a Parquet file with a column of texts
    folder               where the ids are kept, 4 bytes a token; made if need be. What is there of a text that has not changed
                         since (path, size, time of change), cut in the same way, is used again
    tokens, lower, eos   how sentences are cut into tokens, see `hybrid.Text`; with eos contexts reach over lines
    min_count, unknown, ties  of the vocabulary, see `hybrid.Vocabulary.build`
    column               of a Parquet file

    Memory holds the different words of the text, and a piece of it. Raises OSError for files that cannot be read or written;
    ValueError for a text that is none, a pipe, not UTF-8, or has fewer than two words.
    """
    path, folder = Path(os.path.abspath(path)), Path(folder)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: not a file, and it is read twice; expected a text or a Parquet file")
    settings = {"tokens": tokens, "lower": lower, "eos": eos}
    words: dict[str, object] = {"min_count": min_count, "unknown": unknown}
    words |= {} if ties == "name" else {"ties": ties}  # what was kept before there was a choice is found again
    target = folder / f"{path.stem[: files.MOST]}-{_key(path, settings | words | {'column': column})}"
    folder.mkdir(parents=True, exist_ok=True)
    with lock.turn(folder):  # a second process waits, and finds it there
        if not (target / FACTS).exists():
            counted, written = (
                Text(lines(path, column=column, every=eos, label=label), source=str(path), **settings)  # type: ignore[arg-type]
                for label in ("counting words", "writing ids")
            )
            vocabulary = Vocabulary.build(counted, source=str(path), **words)  # type: ignore[arg-type]
            _make(target, written, vocabulary, running=eos)
    return StoredCorpus(target)


def kept_in(folder: str | Path) -> bool:
    """Whether a folder is one for corpora: it has some, or nothing but such as are not whole yet."""
    folder = Path(folder)
    if not folder.is_dir():
        return False
    return all(entry.name.endswith(PART) for entry in folder.iterdir()) or any(folder.glob(f"*/{FACTS}"))


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


__all__ = ["StoredCorpus", "StreamedLanguageFeed", "lines", "stored"]
