"""A corpus whose ids are in files, of which the system keeps in memory what is being used."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...storage import document
from ..text import Corpus
from ..vocabulary import Vocabulary

IDS, AT, FACTS = "ids.i32", "at.i64", "corpus.json"
WORDS = "vocabulary.json"
TOKENS = 2**18  # that are collected before they are written


class StoredCorpus(Corpus):
    """What `write` wrote to a folder, as a Corpus.

    Raises OSError for files that are missing, and ValueError for such as were not written whole.
    """

    def __init__(self, folder: Path):
        try:
            facts = document.read(folder / FACTS)
            tokens, places, self.sha256 = int(facts["tokens"]), int(facts["places"]), str(facts["sha256"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{folder / FACTS}: damaged; remove the folder, and it is made again") from None
        self.vocabulary = Vocabulary.load(folder / WORDS)
        self.ids = _mapped(folder / IDS, np.int32, tokens)
        self.at = _mapped(folder / AT, np.int64, places)


def write(folder: Path, text: Iterable[Sequence[str]], vocabulary: Vocabulary, *, running: bool) -> None:
    """Write the ids of a text to files in `folder`, sentence by sentence.

    running  the text is one sentence, so that contexts reach over its lines

    Raises ValueError where no token of the text is in the vocabulary; OSError for files that cannot be written.
    """
    vocabulary.save(folder / WORDS)
    digest = hashlib.sha256(vocabulary.sha256.encode())
    tokens, places = 0, 1
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
                places += _flush(ids, at, parts, ends, digest)
                held = 0
        places += _flush(ids, at, parts, array("q", [tokens]) if running else ends, digest)
    if not tokens:
        raise ValueError("text: none of its words is in the vocabulary; expected a text in the same language")
    with open(folder / AT, "rb") as at:
        while piece := at.read(2**16):
            digest.update(piece)
    facts = {"tokens": tokens, "places": places, "sha256": digest.hexdigest()}
    (folder / FACTS).write_text(json.dumps(facts) + "\n")


def _flush(ids: BinaryIO, at: BinaryIO, parts: list[np.ndarray], ends: "array[int]", digest: "hashlib._Hash") -> int:
    """Write what was collected, and forget it; returns how many places there were."""
    if parts:
        piece = np.concatenate(parts)
        ids.write(piece.data)
        digest.update(piece.data)
    at.write(ends.tobytes())
    places = len(ends)
    parts.clear()
    del ends[:]
    return places


def _mapped(path: Path, dtype: type, size: int) -> np.ndarray:
    wanted, found = size * np.dtype(dtype).itemsize, path.stat().st_size
    if found != wanted:
        raise ValueError(f"{path}: {found:,} bytes, expected {wanted:,}; remove the folder, and it is made again")
    return np.memmap(path, dtype, "r", shape=(size,))
