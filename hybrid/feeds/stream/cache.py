"""Stored corpora in a folder that the user names: made when first asked for, used again until the text changes."""

import hashlib
import json
import os
import shutil
from pathlib import Path

from ...storage import atomic, lock
from ..text import Text
from ..vocabulary import Vocabulary
from .corpus import FACTS, StoredCorpus, write
from .source import lines

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
    target = folder / f"{path.stem[: atomic.MOST]}-{_key(path, settings | words | {'column': column})}"
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
            atomic.settle_file(file)
        os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    atomic.settle(target.parent)
