"""Word contexts and the word that follows each: training data of a language model."""

from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs, Permuted, check_sizes, shuffled_by
from .text import Corpus, expect_corpus


class _Contexts(Epochs):
    """The common attributes of feeds of contexts."""

    def __init__(self, corpus: Corpus, context: int, batch: int, epochs: int, seed: int | None):
        expect_corpus(corpus)
        self.seed, self.shuffle = shuffled_by(seed)
        check_sizes(self.seed, context=context, batch=batch, epochs=epochs)
        super().__init__(epochs, -(-len(corpus) // batch))
        self.corpus, self.context, self.batch = corpus, context, batch
        self.most_ids = batch * context
        self.classes = len(corpus.vocabulary)
        self.rows = self.classes + 1
        self.counts = corpus.vocabulary.counts


class LanguageFeed(_Contexts):
    """A `Feed` in which every token of a corpus is a target; its input is the `context` tokens before it.

    corpus   the text
    context  number of input tokens before a target. Row V pads the start of a sentence
    batch    examples per batch; the last one of an epoch may have fewer
    epochs   number of passes over the text
    seed     each epoch is a permutation of the tokens, drawn from (seed, epoch); None: each epoch is in the order of the text

    Raises ValueError for anything but a Corpus, and for sizes below 1.
    """

    def __init__(self, corpus: Corpus, *, context: int = 4, batch: int = 512, epochs: int = 1, seed: int | None = 0):
        super().__init__(corpus, context, batch, epochs, seed)
        self._windows, at = _windows(corpus, context)
        self._order = Permuted(at, self.seed, self.shuffle)

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        return self._described("language", self.corpus.sha256, "context", "batch", "epochs", "seed", "shuffle")

    def _cut(self, epoch: int, tick: int) -> Batch:
        windows = self._windows[self._order.part(epoch, tick, self.batch)]
        return Batch(windows[:, :-1].reshape(-1), None, np.ascontiguousarray(windows[:, -1]))


def _windows(corpus: Corpus, context: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns all windows of context + 1 ids over the padded sentences, and the indices of those that end in a token."""
    lengths = np.diff(corpus.at)
    at = np.arange(len(corpus)) + context * np.repeat(np.arange(len(lengths)), lengths)
    padded = np.full(len(corpus) + context * len(lengths), len(corpus.vocabulary), np.int32)
    padded[at + context] = corpus.ids
    return np.lib.stride_tricks.sliding_window_view(padded, context + 1), at


class StreamedLanguageFeed(_Contexts):
    """A `Feed` with the examples of a `LanguageFeed`, for a text that need not fit into memory.

    Chunks come in the order of the text, and the tokens of a chunk are shuffled. Memory holds the order of one chunk. The files
    of a stored corpus are read sequentially once per epoch.

    chunk    tokens that are shuffled together, rounded up to whole batches
    seed     the order of a chunk is a permutation drawn from (seed, epoch, chunk); None: the order of the text, with the
             batches of `LanguageFeed`

    The other arguments and the errors are those of `LanguageFeed`.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        context: int = 4,
        chunk: int = 2**20,
        batch: int = 512,
        epochs: int = 1,
        seed: int | None = 0,
    ):
        check.whole("chunk", chunk, 1)
        super().__init__(corpus, context, batch, epochs, seed)
        self.chunk = -(-chunk // batch) * batch
        self._order: tuple[Any, ...] = (None, None, None)  # epoch, chunk, and its tokens in order

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        names = ("context", "chunk", "batch", "epochs", "seed", "shuffle")
        return self._described("streamed language", self.corpus.sha256, *names)

    def _cut(self, epoch: int, tick: int) -> Batch:
        chunk, first = divmod(tick * self.batch, self.chunk)
        if self._order[:2] != (epoch, chunk):
            self._order = epoch, chunk, self._drawn(epoch, chunk)
        at = self._order[2][first : first + self.batch]
        begins = self.corpus.at[np.searchsorted(self.corpus.at, at, "right") - 1]  # sentence start of each token
        places = at[:, None] + np.arange(-self.context, 0)
        ids = self.corpus.ids[np.maximum(places, 0)]
        ids[places < begins[:, None]] = self.classes
        return Batch(np.asarray(ids).reshape(-1), None, np.asarray(self.corpus.ids[at]))

    def _drawn(self, epoch: int, chunk: int) -> np.ndarray:
        """Returns the tokens of a chunk in the order of an epoch."""
        first = chunk * self.chunk
        size = min(self.chunk, len(self.corpus) - first)
        if not self.shuffle:
            return np.arange(first, first + size)
        return first + np.random.default_rng([self.seed, epoch, chunk]).permutation(size)
