"""Words and their ids."""

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from .. import check

UNKNOWN = "<unk>"
FORMAT = "hybrid vocabulary 1"


class Vocabulary:
    """V words. The id of a word is its index; `build` sorts by descending count, equal counts in alphabetical order.

    words    the words; "<unk>", if present, stands for all other words
    counts   (V,) int64, the count of each word in the source text
    unknown  attribute: the id of "<unk>"; None: it is absent, and `encode` omits other words
    """

    def __init__(self, words: Iterable[str], counts: Iterable[int]):
        self.words = list(words)
        for place, word in enumerate(self.words):
            if not isinstance(word, str):
                raise ValueError(f"words[{place}]: found {word!r}, expected a string")
        self.counts = np.array(list(counts), np.int64)
        self._ids = {word: id for id, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            twice = next(word for word, times in Counter(self.words).items() if times > 1)
            raise ValueError(f"vocabulary: the word {twice!r} occurs twice; expected different words")
        if self.counts.shape != (len(self.words),) or (self.counts < 0).any():
            raise ValueError(f"vocabulary: {len(self.words)} words need as many counts of at least 0")
        self.unknown = self._ids.get(UNKNOWN)

    @classmethod
    def build(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        min_count: int = 1,
        unknown: bool = True,
        source: str = "text",
    ) -> "Vocabulary":
        """Returns the vocabulary of a text.

        sentences  lists of words
        min_count  words with a lower count are omitted
        unknown    True: "<unk>" is a word, with the counts of all omitted words; False: it is absent, as in word2vec
        source     name of the text, for messages

        Raises ValueError for strings instead of lists of words, for an empty text, and if fewer than two words are left.
        """
        _refuse_string("sentences", sentences, "sentences, each a list of words")
        times: Counter[str] = Counter()
        for sentence in sentences:
            _refuse_string("sentence", sentence)
            times.update(sentence)
        total = times.total()
        if total == 0:
            raise ValueError(f"vocabulary: {source} has no words; expected a text")
        times.pop(UNKNOWN, None)
        kept = [(word, n) for word, n in times.items() if n >= min_count]
        if len(kept) < 2:
            words = "1 word occurs" if kept else "0 words occur"
            often = "once" if min_count == 1 else f"{min_count} times"
            remedy = "give it more text" if len(times) < 2 else "lower min_count (--min-count)"
            raise ValueError(f"vocabulary: {words} at least {often} in {source}; at least 2 are needed; {remedy}")
        if unknown:
            kept.append((UNKNOWN, total - sum(n for _, n in kept)))
        kept.sort(key=lambda counted: (-counted[1], counted[0]))
        return cls(*zip(*kept, strict=True))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> np.ndarray:
        """Returns the ids of words, (N,) int32. Unknown words become "<unk>", or are omitted if it is absent.

        Raises ValueError for a string, since its characters are no words.
        """
        _refuse_string("tokens", tokens)
        ids = [self._ids.get(token, self.unknown) for token in tokens]
        return np.array(ids if self.unknown is not None else [id for id in ids if id is not None], np.int32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Returns the words of ids. Raises IndexError for an id outside [0, V), ValueError for an array of another rank."""
        row = check.row("ids", ids)
        check.ids("ids", row, len(self.words))
        return [self.words[id] for id in row]

    @functools.cached_property
    def sha256(self) -> str:
        """The digest of the words and their counts."""
        digest = hashlib.sha256(json.dumps(self.words).encode())
        digest.update(self.counts.tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes the vocabulary as JSON, atomically. Raises OSError."""
        from ..storage import files

        facts = {"format": FORMAT, "words": self.words, "counts": self.counts.tolist()}
        files.write(path, [json.dumps(facts, indent=0).encode(), b"\n"])

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Reads a file of `save`. Raises OSError, and ValueError for a truncated or different file."""
        from ..storage import files

        try:
            facts = files.read(path)
            if facts["format"] != FORMAT:
                raise ValueError
            words, counts = facts["words"], facts["counts"]
            if not all(isinstance(word, str) for word in words) or not all(type(n) is int for n in counts):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: truncated or no vocabulary; expected what Vocabulary.save wrote") from None
        try:
            return cls(words, counts)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{path}: {error}") from None


def _refuse_string(name: str, value: object, expected: str = "a list of words") -> None:
    """Raises ValueError for a string or bytes, whose characters would be taken for words."""
    if isinstance(value, str | bytes):
        shown = value[:40]
        raise ValueError(f"{name}: found the string {shown!r}, expected {expected}; {shown!r}.split() makes one")
