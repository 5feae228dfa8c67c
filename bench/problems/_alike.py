"""Language models whose readout is made of vectors of words: a short word2vec training gives them, on the same clock."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hybrid.engine import Embedding, Engine
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.text import Corpus
from hybrid.models import language
from hybrid.readout import TreeReadout

WIDTH, BATCH = 64, 4096
Shape = Callable[[Any, int, np.ndarray, dict[str, Any], int], Any]


class Alike(language.Language):
    """A language model under shape(counts, width, vectors, options, batch), a readout.

    prepared  seconds that vectors and readout took, once it is made
    """

    prepared = 0.0

    def __init__(self, options: dict[str, Any], *texts: Any, shape: Shape):
        super().__init__(options, *texts)
        self.shape = shape

    def make(self) -> Engine:
        """The untrained engine, but for what the shape of its readout knows."""
        vectors, spent = vectors_of(self.feed.corpus, self.options["seed"], self.options["threads"])
        start = time.perf_counter()
        made = super().make()
        width, names = made.readout.width, ("threads", "micro_batches", "schedule", "warmup", "overlap")
        readout = self.shape(self.feed.counts, width, vectors, self.options, self.feed.batch)
        self.prepared = spent + time.perf_counter() - start
        settings = {name: getattr(made, name) for name in names}
        return Engine(made.embedding, made.trunk, readout, device="cpu", **settings)


_made: dict[tuple[str, int], tuple[np.ndarray, float]] = {}


def vectors_of(corpus: Corpus, seed: int, threads: int) -> tuple[np.ndarray, float]:
    """Skip-gram vectors (V, WIDTH) of one epoch, and the seconds that they took; of a corpus and seed made once."""
    key = corpus.sha256, seed
    if key not in _made:
        _made[key] = _learned(corpus, seed, threads)
    return _made[key]


def _learned(corpus: Corpus, seed: int, threads: int) -> tuple[np.ndarray, float]:
    feed = PairFeed(corpus, mean_batch=min(BATCH, max(len(corpus) // 50, 1)), seed=seed)

    def engine() -> Engine:
        rows = Embedding(feed.rows, WIDTH, rate=0.025, seed=seed)
        return Engine(rows, None, TreeReadout(feed.counts, WIDTH, batch=feed.batch), threads=threads)

    next(engine().run(feed))  # kernels are compiled off the clock
    start, model = time.perf_counter(), engine()
    for _ in model.run(feed):
        pass
    return model.embedding.table, time.perf_counter() - start
