"""Contexts of words, and the word that follows each: what a language model learns from."""

from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs
from .text import Corpus, expect_corpus


class LanguageFeed(Epochs):
    """Every token of a corpus is a target; its input is the `context` tokens before it. A `Feed`.

    corpus   the text
    context  tokens before a target that are its input. At the start of a sentence some are missing; row V stands for them
    batch    examples of a batch; the last one of an epoch may have fewer
    epochs   how often the text is gone through
    seed     each epoch is a permutation of the tokens, drawn from (seed, epoch)
    shuffle  False: each epoch is in the order of the text

    Raises ValueError for anything but a Corpus, and for sizes below 1.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        context: int = 4,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ):
        expect_corpus(corpus)
        for name, value in (("context", context), ("batch", batch), ("epochs", epochs)):
            check.whole(name, value, 1)
        check.whole("seed", seed, 0)
        super().__init__(epochs, -(-len(corpus) // batch))
        self.corpus, self.context, self.batch, self.seed, self.shuffle = corpus, context, batch, seed, shuffle
        self.most_ids = batch * context
        self.classes = len(corpus.vocabulary)
        self.rows = self.classes + 1
        self.counts = corpus.vocabulary.counts
        self._windows, self._at = _windows(corpus, context)
        self._order: tuple[int, np.ndarray] = (-1, self._at)

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        names = ("context", "batch", "epochs", "seed", "shuffle")
        return {"kind": "language", "data": self.corpus.sha256} | {name: getattr(self, name) for name in names}

    def _cut(self, epoch: int, tick: int) -> Batch:
        if self.shuffle and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(self._at)
        windows = self._windows[self._order[1][tick * self.batch : (tick + 1) * self.batch]]
        return Batch(windows[:, :-1].reshape(-1), None, np.ascontiguousarray(windows[:, -1]))


def _windows(corpus: Corpus, context: int) -> tuple[np.ndarray, np.ndarray]:
    """All windows of context + 1 ids over the text, its sentences padded, and the numbers of those that end in a token."""
    lengths = np.diff(corpus.at)
    at = np.arange(len(corpus)) + context * np.repeat(np.arange(len(lengths)), lengths)
    padded = np.full(len(corpus) + context * len(lengths), len(corpus.vocabulary), np.int32)
    padded[at + context] = corpus.ids
    return np.lib.stride_tricks.sliding_window_view(padded, context + 1), at
