"""Pairs of nearby words, drawn as in word2vec."""

from typing import Any, NamedTuple

import numpy as np

from .. import check
from . import Batch, Epochs, check_sizes
from .text import Corpus, expect_corpus

PIECE = 2**20  # tokens counted together
BLOCK = 16_384  # tokens whose pairs are drawn together: enough for speed, few enough for the cache


class PairFeed(Epochs):
    """A `Feed` of skip-gram pairs or CBOW bags of a corpus. Mikolov et al. 2013, arXiv:1310.4546, as in word2vec.c.

    corpus      the text; a vocabulary without "<unk>" omits rare words, as word2vec does
    model       "skipgram": the input is one context word, the target the centre word. As in word2vec.c and gensim, the context
                word's row learns from the centre word's path or negatives
                "cbow": the input is the mean of the context words, the target the centre word
    window      maximum context words on each side; the number is drawn from 1 to window for each centre word
    sample      subsampling of frequent words as in word2vec.c (see `keep_probability`); 0 keeps all
    mean_batch  approximate mean number of examples per batch; the attribute `batch` is the maximum
    epochs      number of passes over the text
    seed        every block of about 16,384 tokens draws its numbers from (seed, epoch, block)
    tokens      attribute: the number of corpus tokens per tick

    A window skips omitted words, and ends where its sentence or its block ends. Raises ValueError for anything but a Corpus,
    and for a sample that leaves no token.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        model: str = "skipgram",
        window: int = 5,
        sample: float = 1e-3,
        mean_batch: int = 1000,
        epochs: int = 1,
        seed: int = 0,
    ):
        expect_corpus(corpus)
        check.choice("model", model, ("skipgram", "cbow"))
        check.whole("window", window, 1, 127)
        check_sizes(seed, mean_batch=mean_batch, epochs=epochs)
        check.number("sample", sample, 0)
        self.corpus, self.model, self.window, self.sample = corpus, model, window, sample
        self.mean_batch, self.seed = mean_batch, seed
        self.counts = corpus.vocabulary.counts
        self.rows = self.classes = len(corpus.vocabulary)
        times = _times(corpus.ids, self.classes)
        self._keep = keep_probability(times, sample).astype(np.float32)
        kept = _kept(self._keep, corpus.ids, times)
        if kept * len(corpus) < 1:
            raise ValueError(
                f"sample: found {sample}, which leaves none of the {len(corpus):,} tokens; expected more, or 0 for all of them"
            )
        tokens = mean_batch / (kept if model == "cbow" else kept * (window + 1))
        self.tokens = max(min(round(tokens), len(corpus)), 1)
        self.most_ids = 2 * window * self.tokens
        self.batch = self.tokens if model == "cbow" else self.most_ids
        self._ticks_per_block = -(-BLOCK // self.tokens)
        self._cached: tuple[int, int, Block] | None = None
        super().__init__(epochs, -(-len(corpus) // self.tokens))

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        names = ("model", "window", "sample", "mean_batch", "epochs", "seed")
        return self._described("pairs", self.corpus.sha256, *names)

    def _cut(self, epoch: int, tick: int) -> Batch:
        number, tick = divmod(tick, self._ticks_per_block)
        if self._cached is None or self._cached[:2] != (epoch, number):
            self._cached = epoch, number, self._block(epoch, number)
        block = self._cached[2]
        first, last = block.edges[tick : tick + 2]
        if block.bag_at is None:
            return Batch(block.ids[first:last], None, block.target[first:last])
        bag_at = block.bag_at[first : last + 1]
        return Batch(block.ids[bag_at[0] : bag_at[-1]], bag_at - bag_at[0], block.target[first:last])

    def _block(self, epoch: int, number: int) -> "Block":
        span = self._ticks_per_block * self.tokens
        first, last = number * span, min((number + 1) * span, len(self.corpus))
        at = self.corpus.at
        inner = at[np.searchsorted(at, first, "right") : np.searchsorted(at, last, "left")] - first
        ids = self.corpus.ids[first:last]
        keep, reach = self._draw(epoch, number, ids)
        block = pairs(ids, np.concatenate([[0], inner, [len(ids)]]), keep, reach, self.tokens, self.model == "cbow")
        for array in (block.ids, block.target):
            array.flags.writeable = False  # batches are views of them
        return block

    def _draw(self, epoch: int, number: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draws, for each token of a block, whether it is kept and the reach of its window."""
        rng = np.random.default_rng([self.seed, epoch, number])
        keep = rng.random(len(ids), np.float32) < self._keep[ids]
        return keep, rng.integers(1, self.window, len(ids), np.int8, endpoint=True)


class Block(NamedTuple):
    """The examples of a span of tokens.

    ids, bag_at, target  as in a `Batch`
    edges                (ticks + 1,): tick t has the examples edges[t] to edges[t + 1]
    """

    ids: np.ndarray
    bag_at: np.ndarray | None
    target: np.ndarray
    edges: np.ndarray


def _times(ids: np.ndarray, classes: int) -> np.ndarray:
    """Returns word counts, (classes,) int64; ids in a file are read piecewise."""
    spans = (ids[first : first + PIECE] for first in range(0, len(ids), PIECE))
    return sum((np.bincount(span, minlength=classes) for span in spans), np.zeros(classes, np.int64))


def _kept(keep: np.ndarray, ids: np.ndarray, times: np.ndarray) -> float:
    """Returns the mean keep probability of tokens; for ids in a file from their counts, which differs only by rounding."""
    if isinstance(ids, np.memmap):
        return float((keep.astype(np.float64) * times).sum() / len(ids))
    return float(keep[ids].mean(dtype=np.float64))


def keep_probability(counts: np.ndarray, sample: float) -> np.ndarray:
    """Returns the keep probability of each word, min(1, (sqrt(f / sample) + 1) sample / f), where f is its relative frequency.

    counts (V,); returns (V,) float64, ones if sample is 0.
    """
    if not sample:
        return np.ones(len(counts))
    share = np.maximum(counts, 1) / max(counts.sum(), 1) / sample
    return np.asarray(np.minimum((np.sqrt(share) + 1) / share, 1))


def pairs(
    ids: np.ndarray, sentence_at: np.ndarray, keep: np.ndarray, reach: np.ndarray, tokens: int, cbow: bool
) -> Block:
    """Returns the examples of n tokens.

    ids          (n,) int32
    sentence_at  (S + 1,): sentence s is ids[sentence_at[s] : sentence_at[s + 1]]
    keep         (n,) bool: True for the tokens that are kept
    reach        (n,): words on each side in the window around each token
    tokens       tokens per tick
    cbow         True: bags instead of pairs
    """
    from cpu.words import windows

    context, centres, at, kept_at = windows(ids, sentence_at, keep, reach)
    sizes, edges = np.diff(at), kept_at[np.minimum(np.arange(0, len(ids) + tokens, tokens), len(ids))]
    if not cbow:
        return Block(context, None, np.repeat(centres, sizes), at[edges])
    some = sizes > 0  # a single word is no example
    bags = np.concatenate([[0], np.cumsum(some)])
    return Block(context, np.append(at[:-1][some], at[-1]), centres[some], bags[edges])
