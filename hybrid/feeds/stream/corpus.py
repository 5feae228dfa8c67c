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
PIECE = 2**16  # places, or bytes, that are checked at a time


class StoredCorpus(Corpus):
    """What `write` wrote to a folder, as a Corpus. All of it is read once: kernels go where the ids say.

    Raises OSError for files that are missing, and ValueError for such as are not what was written.
    """

    def __init__(self, folder: Path):
        self.vocabulary = Vocabulary.load(folder / WORDS)
        try:
            self.sha256 = str(document.read(folder / FACTS)["sha256"])
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
