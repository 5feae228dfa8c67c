"""Word contexts and the word that follows each: training data of a language model."""

from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs, check_sizes, shuffled_by
from .text import Corpus, expect_corpus


class LanguageFeed(Epochs):
    """A `Feed` in which every token of a corpus is a target; its input is the `context` tokens before it.

    corpus   the text
    context  number of input tokens before a target. Row V pads the start of a sentence
    batch    examples per batch; the last one of an epoch may have fewer
    epochs   number of passes over the text
    seed     each epoch is a permutation of the tokens, drawn from (seed, epoch); None: each epoch is in the order of the text
    chunk    for a text that need not fit into memory, such as a stored corpus: tokens that are shuffled together, rounded up to
             whole batches. Chunks come in the order of the text, and memory holds one; its order is drawn from (seed, epoch,
             chunk). None: the whole text is one

    Raises ValueError for anything but a Corpus, and for sizes below 1.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        context: int = 4,
        batch: int = 512,
        epochs: int = 1,
        seed: int | None = 0,
        chunk: int | None = None,
    ):
        expect_corpus(corpus)
        self.seed, self.shuffle = shuffled_by(seed)
        check_sizes(self.seed, context=context, batch=batch, epochs=epochs)
        super().__init__(epochs, -(-len(corpus) // batch))
        if chunk is not None:
            check.whole("chunk", chunk, 1)
            chunk = -(-chunk // batch) * batch
        self.corpus, self.context, self.batch, self.chunk = corpus, context, batch, chunk
        self.most_ids = batch * context
        self.classes = len(corpus.vocabulary)
        self.rows = self.classes + 1
        self.counts = corpus.vocabulary.counts
        self._chunk: tuple[Any, ...] = (None, None, None)  # its number, and its _windows
        self._order: tuple[Any, ...] = (None, None, None)  # epoch, chunk, and the places of its tokens in order

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        kind, names = ("language", ()) if self.chunk is None else ("streamed language", ("chunk",))
        return self._described(kind, self.corpus.sha256, "context", *names, "batch", "epochs", "seed", "shuffle")

    def _cut(self, epoch: int, tick: int) -> Batch:
        size = self.chunk or self.ticks_per_epoch * self.batch
        chunk, first = divmod(tick * self.batch, size)
        if self._chunk[0] != chunk:
            self._chunk = chunk, *_windows(self.corpus, self.context, chunk * size, size)
        _, windows, places = self._chunk
        if self._order[:2] != (epoch, chunk):
            self._order = epoch, chunk, self._drawn(epoch, chunk, places)
        found = windows[self._order[2][first : first + self.batch]]
        return Batch(found[:, :-1].reshape(-1), None, np.ascontiguousarray(found[:, -1]))

    def _drawn(self, epoch: int, chunk: int, places: np.ndarray) -> np.ndarray:
        """Returns the places of a chunk in the order of an epoch."""
        if not self.shuffle:
            return places
        seed = [self.seed, epoch] if self.chunk is None else [self.seed, epoch, chunk]
        return np.random.default_rng(seed).permutation(places)


def _windows(corpus: Corpus, context: int, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns windows of context + 1 ids over padded sentences, and the indices of those that end in tokens from first on."""
    end = min(first + size, len(corpus))
    some = slice(np.searchsorted(corpus.at, first, "right") - 1, np.searchsorted(corpus.at, end) + 1)
    begin = max(corpus.at[some.start], first - context)
    lengths = np.diff(np.clip(corpus.at[some], begin, end))
    at = np.arange(end - begin) + context * np.repeat(np.arange(len(lengths)), lengths)
    padded = np.full(end - begin + context * len(lengths), len(corpus.vocabulary), np.int32)
    padded[at + context] = corpus.ids[begin:end]
    return np.lib.stride_tricks.sliding_window_view(padded, context + 1), at[first - begin :]
