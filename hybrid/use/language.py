"""Language models: most likely next words, text continuation and text probabilities from a trained engine."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check
from ..feeds.language import LanguageFeed
from ..feeds.text import EOS, TOKENS, Corpus, Text
from ..feeds.vocabulary import Vocabulary
from .vectors import Similar

if TYPE_CHECKING:
    from ..engine import Engine

BATCH = 512  # tokens per batch


class LanguageModel(Similar):
    """A next-word model from an engine trained on a `LanguageFeed`.

    engine               its embedding concatenates the words of a context; row V is the padding before a text
    vocabulary           maps words to ids; missing words are "<unk>"
    tokens, lower, eos   tokenisation, see `Text`: must match the training text

    A text is a string, which is tokenised, or a list of words. Without eos, the context is the last line of a string, since
    lines are trained separately; with eos, contexts span lines, which end in "<eos>".

    Raises ValueError for a vocabulary that does not fit the engine.
    """

    def __init__(
        self, engine: "Engine", vocabulary: Vocabulary, *, tokens: str = "words", lower: bool = True, eos: bool = False
    ):
        check.choice("tokens", tokens, tuple(TOKENS))
        classes = engine.readout.classes
        if len(vocabulary) != classes or len(vocabulary) + 1 != engine.embedding.rows:
            raise ValueError(f"vocabulary: found {len(vocabulary):,} words, expected {classes:,}, one per class")
        super().__init__(vocabulary.words, engine.embedding, "word")
        self.engine, self.vocabulary = engine, vocabulary
        self.tokens, self.lower, self.eos = tokens, lower, eos
        self.context = engine.embedding.per_example

    def words(self, text: str | Sequence[str]) -> list[str]:
        """Returns the words of a text: its last line, or all lines with eos."""
        if not isinstance(text, str):
            return list(text)
        cut, lines = TOKENS[self.tokens], (text.lower() if self.lower else text).split("\n")
        if not self.eos:
            return cut(lines[-1])
        return [word for line in lines[:-1] for word in [*cut(line), EOS]] + cut(lines[-1])

    def unknown(self, text: str | Sequence[str]) -> list[str]:
        """Returns the distinct words of a text that the model reads as "<unk>"."""
        return [word for word in dict.fromkeys(self.words(text)) if word not in self.vectors]

    def contexts(self, texts: Sequence[str | Sequence[str]]) -> np.ndarray:
        """Returns the contexts (n, context) int32 of n texts: the ids of their last words, padded on the left."""
        check.no_table("texts", texts)
        if isinstance(texts, str):
            raise ValueError(f"texts: found the string {texts[:40]!r}, expected a list of texts")
        found = np.full((len(texts), self.context), len(self.vocabulary), np.int32)
        for row, text in zip(found, texts, strict=True):
            ids = self.vocabulary.encode(self.words(text)[-self.context :])
            row[len(row) - len(ids) :] = ids
        return found

    def next(self, text: str | Sequence[str], k: int = 10) -> list[tuple[str, float]]:
        """Returns the k most likely next words with their probabilities, most likely first.

        For many texts, `model.engine.best(model.contexts(texts), k)` returns ids and log-probabilities, both (n, k).

        Raises ValueError for k outside 1 to V.
        """
        contexts = self.contexts([text])
        ids, log_probs = self.engine.best(contexts, k)
        if getattr(self.engine.readout, "kind", "") == "neighbours":  # its best are logits
            log_probs = np.take_along_axis(self.engine.scores(contexts), ids, axis=1)
        return list(zip(self.vocabulary.decode(ids[0]), np.exp(log_probs[0]).tolist(), strict=True))

    def continue_text(
        self, text: str | Sequence[str], tokens: int = 20, *, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """Returns words sampled one after another to continue a text; never "<unk>".

        tokens       number of words
        temperature  1: the model's probabilities; lower: sharper; 0: always the most likely word
        seed         of the sampling: equal seeds give equal words

        Raises ValueError for a negative temperature or number of words.
        """
        check.whole("tokens", tokens, 0)
        check.number("temperature", temperature, 0)
        words = self._drawn(self.contexts([text]), temperature, np.random.default_rng(seed))
        return [self.vocabulary.words[id] for id, _ in zip(words, range(tokens), strict=False)]

    def log_prob(self, text: str | Text | Sequence[Sequence[str]]) -> np.ndarray:
        """Returns the log-probability of each word given those before it, (T,) float32; unknown words are "<unk>".

        text  a string with one sentence per line; a Text; or sentences as lists of words

        Raises ValueError for a text without words.
        """
        feed = self._feed(text)
        parts = [
            self.engine.inline.run(
                self.engine.readout.log_prob, self.engine.hidden(batch.ids, batch.bag_at), batch.target
            ).wait()
            for batch in (feed[tick] for tick in range(len(feed)))
        ]
        return np.concatenate(parts)

    def perplexity(self, text: str | Text | Sequence[Sequence[str]]) -> float:
        """Returns exp of the mean negative log-probability of a text's words; infinity if too large for a float."""
        loss = -float(self.log_prob(text).mean(dtype=np.float64))
        return math.exp(loss) if loss < 700 else math.inf

    def _feed(self, text: str | Text | Sequence[Sequence[str]]) -> LanguageFeed:
        if isinstance(text, str):
            lines = text.split("\n")
            lines = lines if self.eos else [line for line in lines if line.strip()]
            text = Text(lines, tokens=self.tokens, lower=self.lower, eos=self.eos)
        corpus = Corpus(text, self.vocabulary)
        corpus = Corpus.from_ids(corpus.ids, self.vocabulary) if self.eos else corpus
        batch = min(BATCH, self.engine.readout.batch)
        return LanguageFeed(corpus, context=self.context, batch=batch, seed=None)

    def _drawn(self, context: np.ndarray, temperature: float, rng: np.random.Generator) -> Iterator[int]:
        """Yields ids that continue a context (1, n), without end."""
        never: Any = self.vocabulary.unknown
        while True:
            scores = self.engine.scores(context)[0].astype(np.float64)
            if never is not None:
                scores[never] = -np.inf
            id = int(scores.argmax())
            if temperature:
                with np.errstate(over="ignore"):  # at very low temperatures all others have probability 0
                    reached = np.cumsum(np.exp((scores - scores[id]) / temperature))
                id = int(np.searchsorted(reached / reached[-1], rng.random(), side="right"))
            yield id
            context = np.append(context[:, 1:], [[id]], axis=1).astype(np.int32)
