"""Contexts of words, and the word that follows each, of a text that is gone through chunk by chunk."""

from typing import Any

import numpy as np

from ... import check
from .. import Batch
from ..epochs import Epochs
from ..text import Corpus, expect_corpus


class StreamedLanguageFeed(Epochs):
    """Every token of a corpus is a target; its input is the `context` tokens before it. A `Feed`.

    Chunks come in the order of the text; within one the tokens are shuffled. Memory holds the order of one chunk, and the
    files of a `StoredCorpus` are read from the first to the last once an epoch.

    corpus   the text
    context  tokens before a target that are its input. At the start of a sentence some are missing; row V stands for them
    chunk    tokens that are shuffled together, rounded up to whole batches
    batch    examples of a batch; the last one of an epoch may have fewer
    epochs   how often the text is gone through
    seed     the order of a chunk is a permutation drawn from (seed, epoch, chunk)
    shuffle  False: the order of the text; batches are then those of `LanguageFeed`

    Raises ValueError for anything but a Corpus, and for sizes below 1.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        context: int = 4,
        chunk: int = 2**20,
        batch: int = 512,
        epochs: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ):
        expect_corpus(corpus)
        for name, value in (("context", context), ("chunk", chunk), ("batch", batch), ("epochs", epochs)):
            check.whole(name, value, 1)
        check.whole("seed", seed, 0)
        super().__init__(epochs, -(-len(corpus) // batch))
        self.corpus, self.context, self.batch, self.seed, self.shuffle = corpus, context, batch, seed, shuffle
        self.chunk = -(-chunk // batch) * batch
        self.most_ids = batch * context
        self.classes = len(corpus.vocabulary)
        self.rows = self.classes + 1
        self.counts = corpus.vocabulary.counts
        self._order: tuple[int, int, np.ndarray] = (-1, -1, np.empty(0, np.int64))

    def describe(self) -> dict[str, Any]:
        """See `Feed`."""
        names = ("context", "chunk", "batch", "epochs", "seed", "shuffle")
        return {"kind": "streamed language", "data": self.corpus.sha256} | {name: getattr(self, name) for name in names}

    def _cut(self, epoch: int, tick: int) -> Batch:
        chunk, first = divmod(tick * self.batch, self.chunk)
        if self._order[:2] != (epoch, chunk):
            self._order = epoch, chunk, self._drawn(epoch, chunk)
        at = self._order[2][first : first + self.batch]
        begins = self.corpus.at[np.searchsorted(self.corpus.at, at, "right") - 1]  # of the sentence of each
        places = at[:, None] + np.arange(-self.context, 0)
        ids = self.corpus.ids[np.maximum(places, 0)]
        ids[places < begins[:, None]] = self.classes
        return Batch(np.asarray(ids).reshape(-1), None, np.asarray(self.corpus.ids[at]))

    def _drawn(self, epoch: int, chunk: int) -> np.ndarray:
        """The tokens of a chunk in the order of an epoch."""
        first = chunk * self.chunk
        size = min(self.chunk, len(self.corpus) - first)
        if not self.shuffle:
            return np.arange(first, first + size)
        return first + np.random.default_rng([self.seed, epoch, chunk]).permutation(size)
