"""Text: reading it, cutting it into sentences and tokens, and the ids it becomes."""

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import check
from ..vocabulary import Vocabulary

TOKENS: dict[str, Callable[[str], list[str]]] = {  # ways to cut a sentence
    "words": re.compile(r"<unk>|\w+(?:['\u2019]\w+)*|[^\w\s]").findall,
    "whitespace": str.split,
}
LONGEST = 20_000  # characters; longer lines are cut, so that a text without line ends can be split and shuffled
_PIECE = re.compile(rf".{{1,{LONGEST}}}(?:\s|\Z)|.{{1,{LONGEST}}}", re.DOTALL)
_PARAGRAPH = re.compile(r"\n\s*\n")
_RULE = re.compile(r"^[^\w\n]+$", re.MULTILINE)  # a line without a letter or digit: an underline, a table's frame


class Text:
    """Sentences of a text; iterating gives the tokens of each, sentences without one left out.

    sentences  strings: the lines or paragraphs of the text
    tokens     "words": words, numbers and single punctuation marks; "whitespace": what white space separates
    lower      whether upper case becomes lower case first
    source     name of the text, for messages
    """

    def __init__(self, sentences: Sequence[str], *, tokens="words", lower=True, source="text"):
        check.choice("tokens", tokens, tuple(TOKENS))
        self.sentences, self.tokens, self.lower, self.source = sentences, tokens, lower, source

    def __iter__(self) -> Iterator[list[str]]:
        cut = TOKENS[self.tokens]
        for sentence in self.sentences:
            tokens = cut(sentence.lower() if self.lower else sentence)
            if tokens:
                yield tokens

    def split(self, *, valid: float = 0.1, test: float = 0.0, seed: int = 0) -> "Parts":
        """Draw sentences for validation and test, the given shares of all; the rest is for training. Order is kept.

        Raises ValueError for shares that leave a part, wanted or not, without a sentence to train on or to measure by.
        """
        if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
            raise ValueError(f"split: found valid {valid} and test {test}, expected shares that sum to less than 1")
        n = len(self.sentences)
        sizes = [max(round(n * share), 1) if share else 0 for share in (valid, test)]
        if sum(sizes) >= n:
            raise ValueError(
                f"split: {self.source} has {n} sentences (lines); expected at least {sum(sizes) + 1};"
                " give it more lines, or a validation text of its own"
            )
        part = np.zeros(n, np.int8)
        drawn = np.random.default_rng(seed).permutation(n)
        part[drawn[: sizes[0]]] = 1
        part[drawn[sizes[0] : sum(sizes)]] = 2
        return Parts(*(self._some(np.flatnonzero(part == number)) for number in range(3)))

    def _some(self, chosen: np.ndarray) -> "Text":
        sentences = [self.sentences[number] for number in chosen]
        return Text(sentences, tokens=self.tokens, lower=self.lower, source=self.source)


class Parts(NamedTuple):
    """A text, split."""

    train: Text
    valid: Text
    test: Text


def read(path, *, tokens="words", lower=True, paragraphs=False) -> Text:
    """The text of a UTF-8 file; its sentences are its lines, or its paragraphs, which empty lines separate.

    Raises OSError for an unreadable file, and ValueError for one that is empty, binary or, with the byte, not UTF-8.
    """
    data = Path(path).read_bytes()
    if (zero := data.find(b"\0")) >= 0:
        raise ValueError(f"{path}: a zero byte at byte {zero}: a binary file; expected UTF-8 text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"byte {data[error.start]:#04x} at byte {error.start}"
        raise ValueError(
            f"{path}: {byte} is not UTF-8; expected UTF-8 text; convert the file with iconv -f latin1 -t utf-8"
        ) from None
    if not text.strip():
        what = "only white space" if data else "empty"
        raise ValueError(f"{path}: {what}; expected text")
    return Text(_sentences(text, paragraphs), tokens=tokens, lower=lower, source=str(path))


def documentation() -> Text:
    """The documentation of the Python language that every Python carries (about 0.45 MB), in paragraphs.

    It differs from one version of Python to the next.
    """
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    return Text(_sentences(_RULE.sub("", text), paragraphs=True), source="Python's documentation")


def _sentences(text: str, paragraphs: bool) -> list[str]:
    found = _PARAGRAPH.split(text) if paragraphs else text.split("\n")
    sentences: list[str] = []
    for sentence in found:
        if len(sentence) > LONGEST:
            sentences += _PIECE.findall(sentence)
        elif sentence.strip():
            sentences.append(sentence)
    return sentences


class Corpus:
    """A text in ids: sentence s is ids[at[s] : at[s + 1]].

    ids  (T,) int32;  at  (S + 1,) int64

    Raises ValueError where no token of the text is in the vocabulary.
    """

    def __init__(self, text: Iterable[Sequence[str]], vocabulary: Vocabulary):
        encoded = [ids for tokens in text if len(ids := vocabulary.encode(tokens))]
        if not encoded:
            source = getattr(text, "source", "text")
            raise ValueError(f"{source}: none of its words is in the vocabulary; expected a text in the same language")
        self.ids = np.concatenate(encoded)
        self.at = np.cumsum([0, *map(len, encoded)])
        self.vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of the words and where they stand."""
        digest = hashlib.sha256(self.vocabulary.sha256.encode())
        digest.update(self.ids.data)
        digest.update(self.at.data)
        return digest.hexdigest()
