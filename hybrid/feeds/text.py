"""Reading of text, its sentences and tokens, and their ids."""

import codecs
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import check
from .vocabulary import Vocabulary

TOKENS: dict[str, Callable[[str], list[str]]] = {  # tokenisers of a sentence
    "words": re.compile(r"<unk>|<eos>|\w+(?:['\u2019]\w+)*|[^\w\s]").findall,
    "whitespace": str.split,
}
EOS = "<eos>"
PIECE = 2**20  # bytes of a file read together
ENDLESS = 2**27  # maximum characters of a line that has to stay whole
LONGEST = 20_000  # characters; longer lines are cut, so that a text without line ends can be split and shuffled
# A piece of a long line, cut at white space if possible
_PIECE = re.compile(rf".{{1,{LONGEST}}}(?:\s|\Z)|.{{1,{LONGEST}}}", re.DOTALL)


class Text:
    """Sentences of a text. Iteration yields a list of tokens for each nonempty sentence.

    sentences  strings: the lines or paragraphs of the text
    tokens     "words": words, numbers and single punctuation marks; "whitespace": split at white space
    lower      True: convert to lower case first
    eos        True: end every sentence with the token "<eos>"; an empty one is then that token alone
    source     name of the text, for messages

    Raises ValueError for one string instead of several, and for unknown `tokens`.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        *,
        tokens: str = "words",
        lower: bool = True,
        eos: bool = False,
        source: str = "text",
    ):
        check.choice("tokens", tokens, tuple(TOKENS))
        check.no_table("sentences", sentences)
        if isinstance(sentences, str):
            raise ValueError(f"sentences: found the string {sentences[:40]!r}, expected strings, one per sentence")
        self.sentences, self.tokens, self.lower, self.eos, self.source = sentences, tokens, lower, eos, source

    def __iter__(self) -> Iterator[list[str]]:
        cut, end = TOKENS[self.tokens], [EOS] if self.eos else []
        for sentence in self.sentences:
            tokens = cut(sentence.lower() if self.lower else sentence) + end
            if tokens:
                yield tokens

    def split(self, *, valid: float = 0.1, test: float = 0.0, seed: int = 0) -> "Parts":
        """Draws sentences for validation and for test; the rest is for training. Each part keeps their order.

        valid, test  fractions of all sentences; one above 0 gives at least one sentence
        seed         seed of the draw

        Raises ValueError for fractions that sum to 1 or more, and if no sentence is left for training.
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
        some = ([self.sentences[at] for at in np.flatnonzero(part == number).tolist()] for number in range(3))
        return Parts(*(Text(of, tokens=self.tokens, lower=self.lower, eos=self.eos, source=self.source) for of in some))


class Parts(NamedTuple):
    """A text in three parts, see `Text.split`."""

    train: Text
    valid: Text
    test: Text


def read(path: str | Path, *, tokens: str = "words", lower: bool = True, eos: bool = False) -> Text:
    """Reads a UTF-8 file, whose lines are sentences.

    tokens, lower, eos  see `Text`; with eos empty lines are also sentences, and long lines stay whole

    Raises OSError for an unreadable file, and ValueError for one that is empty, binary or, naming the byte, not UTF-8.
    """
    lines = list(lines_of(path, eos))
    if not any(map(str.strip, lines)):
        raise ValueError(f"{path}: empty, or only white space; expected text")
    return Text(lines, tokens=tokens, lower=lower, eos=eos, source=str(path))


def lines_of(path: str | Path, every: bool, advance: Callable[[int], Any] = lambda size: None) -> Iterator[str]:
    """Yields the sentences of a UTF-8 file, read piecewise; raises as `read`, except for an empty file.

    every    True: empty lines are also sentences, and long ones stay whole
    advance  called with the size of each piece
    """
    number, rest = 1, ""
    for piece in _decoded(path, advance):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            yield from sentences(line, every)
        number += len(whole)
        if every and len(rest) > ENDLESS:
            raise ValueError(f"{path}, line {number}: more than {ENDLESS:,} characters; expected lines of text")
        if not every and len(rest) > 2 * LONGEST:
            *whole, rest = _PIECE.findall(rest)
            yield from whole
    if rest:
        yield from sentences(rest, every)


def _decoded(path: str | Path, advance: Callable[[int], Any]) -> Iterator[str]:
    decoder, at = codecs.getincrementaldecoder("utf-8-sig")(), 0
    with open(path, "rb") as file:
        while True:
            piece = file.read(PIECE)
            if (zero := piece.find(b"\0")) >= 0:  # /dev/zero, for example, never ends
                raise ValueError(
                    f"{path}: a zero byte at byte {at + zero}: a binary file; expected UTF-8 text; gunzip or iconv it first"
                )
            at += len(piece)
            try:
                yield decoder.decode(piece, not piece)
            except UnicodeDecodeError as error:
                byte = f"byte {error.object[error.start]:#04x} at byte {at - len(error.object) + error.start}"
                raise ValueError(
                    f"{path}: {byte} is not UTF-8; expected UTF-8 text; convert the file with iconv -f latin1 -t utf-8"
                ) from None
            if not piece:
                return
            advance(len(piece))


def documentation() -> Text:
    """Returns the Python language documentation that is part of every Python (about 0.35 MB), in paragraphs.

    Repeated paragraphs of its topics are removed, so that no held-out paragraph is also in the training part. The text differs
    between versions of Python.
    """
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    paragraphs = re.split(r"\n\s*\n", re.sub(r"(?m)^[^\w\n]+$", "", text))  # removes underlines and table borders
    found = (sentence.strip() for paragraph in paragraphs for sentence in sentences(paragraph, False))
    return Text(list(dict.fromkeys(found)), source="Python's documentation")


def sentences(line: str, every: bool) -> list[str]:
    """Returns the sentences of a line: itself if `every`, or else none if it is empty and pieces if it is long."""
    if every or len(line) <= LONGEST:
        return [line] if every or line.strip() else []
    return _PIECE.findall(line)


class Corpus:
    """A text of T tokens in S sentences, as ids of a vocabulary.

    text        a Text, or sentences that are lists of words
    vocabulary  maps words to ids; unknown words become "<unk>", or are omitted if it has no "<unk>"
    ids         attribute: (T,) int32
    at          attribute: (S + 1,) int64, sentence s is ids[at[s] : at[s + 1]]

    Raises ValueError for a string among the sentences, and if no token of the text is in the vocabulary.
    """

    def __init__(self, text: Iterable[Sequence[str]], vocabulary: Vocabulary):
        if isinstance(text, str):
            raise ValueError(f"text: found {text[:40]!r}, expected sentences; Text([...]) cuts strings into words")
        encoded, words = [], 0
        for sentence in text:
            tokens = sentence if isinstance(sentence, str) else list(sentence)  # encode refuses a string
            words += len(tokens)
            if len(ids := vocabulary.encode(tokens)):
                encoded.append(ids)
        if not encoded:
            reason = "none of its words is in the vocabulary; expected a text in the same language"
            raise ValueError(f"{getattr(text, 'source', 'text')}: {reason if words else 'found no words'}")
        self.ids = np.concatenate(encoded)
        self.at = np.cumsum([0, *map(len, encoded)])
        self.vocabulary = vocabulary

    @classmethod
    def from_ids(cls, ids: Iterable[int], vocabulary: Vocabulary) -> "Corpus":
        """Returns a corpus of one sentence, whose contexts cross all of it, from vocabulary ids, (T,) integers in [0, V).

        Raises ValueError for a malformed array, and IndexError for an id out of range.
        """
        ids = check.row("ids", ids)
        if not ids.size:
            raise ValueError("ids: found none, expected a text")
        check.ids("ids", ids, len(vocabulary))
        corpus = cls.__new__(cls)
        corpus.ids, corpus.at, corpus.vocabulary = ids.astype(np.int32), np.array([0, ids.size]), vocabulary
        return corpus

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def sha256(self) -> str:
        """The digest of the words and their positions."""
        digest = hashlib.sha256(self.vocabulary.sha256.encode())
        digest.update(self.ids.data)
        digest.update(self.at.data)
        return digest.hexdigest()


def expect_corpus(corpus: object) -> Corpus:
    """Returns `corpus`; ValueError unless it is a Corpus."""
    if not isinstance(corpus, Corpus):
        made = "Corpus.from_ids(ids, vocabulary) makes one of ids, Corpus(sentences, vocabulary) of lists of words"
        raise ValueError(f"corpus: found {type(corpus).__name__}, expected a Corpus; {made}")
    return corpus
