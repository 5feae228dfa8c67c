"""word2vec: an epoch of skip-gram and CBOW under a tree and 5 negatives, ours against gensim and fastText."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.measure import Work, append, measure, peer, show
from hybrid import SGD, NegativeSampling, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.text import Corpus, Text, documentation, read
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.models.words import batch_of
from hybrid.readout import SampledReadout, TreeReadout

WIDTH, WINDOW, SAMPLE, MIN_COUNT, RATE, NEGATIVES = 100, 5, 1e-3, 5, 0.025, 5
CASES = {f"{model}-{readout}": (model, readout) for model in ("skipgram", "cbow") for readout in ("tree", "sampled")}
ONLY = tuple(CASES)


def run(arguments) -> None:
    """Measures words per second: words of the text, over the seconds of training."""
    text = _text(arguments.quick)
    corpus = Corpus(text, Vocabulary.build(text, min_count=MIN_COUNT, unknown=False))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        sentences = list(text)
        path.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
        for name in arguments.only or CASES:
            case = Case(*CASES[name], corpus, sentences, path, arguments.threads)
            records = measure([case.ours(), *case.gensim(), *case.fasttext()], arguments.repeat)
            show(records)
            append(arguments.json, records)


def _text(quick: bool) -> Text:
    """Returns WikiText-2 from HYBRID_DATA, without its <unk>, else Python's documentation."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2" / "train.txt"
    if quick or not path.exists():
        print(f"text: Python's documentation, not {path} (HYBRID_DATA names the folder that holds wikitext-2/)")
        return documentation()
    text = read(path, tokens="whitespace")
    kept = (" ".join(word for word in line.lower().split() if word != "<unk>") for line in text.sentences)
    return Text([line for line in kept if line], tokens="whitespace", source=str(path))


class Case:
    """One model under one readout, on a text.

    corpus, sentences, path  the text in each rival's format
    """

    def __init__(self, model: str, readout: str, corpus: Corpus, sentences: list[list[str]], path: Path, threads: int):
        self.model, self.readout, self.corpus, self.sentences, self.path = model, readout, corpus, sentences, path
        self.threads, self.tokens = threads, sum(map(len, sentences))

    def ours(self) -> Work:
        """Returns our engine, from its first tick to its last."""
        losses: list[float] = []

        def check():
            first, last = losses[0], np.nanmean(losses[-10:])
            if not last < first - 0.05:  # nats: skip-gram has high entropy, and starts at that of single words
                raise AssertionError(f"the loss fell from {first} to {last} only")

        def epoch() -> float:
            engine, feed = learner(self.corpus, self.model, self.readout, self.threads)
            start = time.perf_counter()
            losses[:] = [tick.loss for tick in engine.run(feed)]
            return time.perf_counter() - start

        return self._work("ours", epoch, check)

    def gensim(self) -> list[Work]:
        """Returns gensim's Cython routines on sentences in memory."""
        gensim = peer("gensim")
        if not gensim:
            return []
        from gensim.models import Word2Vec, word2vec

        tree = self.readout == "tree"
        built = Word2Vec(
            vector_size=WIDTH,
            window=WINDOW,
            min_count=MIN_COUNT,
            sample=SAMPLE,
            sg=int(self.model == "skipgram"),
            hs=int(tree),
            negative=0 if tree else NEGATIVES,
            alpha=RATE,
            workers=self.threads,
            cbow_mean=1,
        )
        built.build_vocab(self.sentences)

        def epoch() -> float:
            start = time.perf_counter()
            built.train(self.sentences, total_examples=built.corpus_count, epochs=1)
            return time.perf_counter() - start

        def check():
            _expect_finite(built.wv.vectors)
            if len(built.wv) != len(self.corpus.vocabulary):
                raise AssertionError(f"{len(built.wv)} words, expected {len(self.corpus.vocabulary)}")

        return [self._work(f"gensim {gensim.__version__} (FAST_VERSION {word2vec.FAST_VERSION})", epoch, check)]

    def fasttext(self) -> list[Work]:
        """Returns fastText without subwords; the time to read the file and build the vocabulary is subtracted."""
        fasttext = peer("fasttext")
        if not fasttext:
            return []
        learned: list[Any] = []

        def seconds(epochs: int) -> float:
            start = time.perf_counter()
            learned[:] = [
                fasttext.train_unsupervised(
                    str(self.path),
                    model=self.model,
                    dim=WIDTH,
                    ws=WINDOW,
                    minCount=MIN_COUNT,
                    minn=0,
                    maxn=0,
                    bucket=0,
                    t=SAMPLE,
                    loss="hs" if self.readout == "tree" else "ns",
                    neg=NEGATIVES,
                    lr=RATE,
                    epoch=epochs,
                    thread=self.threads,
                    verbose=0,
                )
            ]
            return time.perf_counter() - start

        def epoch() -> float:
            return -seconds(0) + seconds(1)

        return [self._work("fastText", epoch, lambda: _expect_finite(learned[0].get_output_matrix()))]

    def _work(self, who: str, epoch: Callable[[], float], check: Callable[[], None]) -> Work:
        readout = "tree" if self.readout == "tree" else f"{NEGATIVES} negatives"
        words = len(self.corpus.vocabulary)
        params = {"tokens": len(self.corpus), "words": words, "width": WIDTH, "window": WINDOW, "readout": readout}
        given: dict[str, Any] = {"threads": self.threads, "own_clock": True, "warm": 0}
        return Work(f"words.{self.model}", who, params, self.tokens, "words/s", epoch, check, **given)


def learner(corpus: Corpus, model: str, readout: str, threads: int, epochs: int = 1) -> tuple[Engine, PairFeed]:
    """Returns a new engine and its feed; readout: "tree" or "sampled"."""
    batch = batch_of(len(corpus.vocabulary))
    feed = PairFeed(corpus, model=model, window=WINDOW, sample=SAMPLE, mean_batch=batch, epochs=epochs)
    embedding = Embedding(feed.rows, WIDTH, bags="undivided" if model == "cbow" else None, optimiser=SGD(RATE))
    made: TreeReadout | SampledReadout
    if readout == "tree":
        made = TreeReadout(feed.counts, WIDTH, batch=feed.batch, optimiser=SGD(RATE))
    else:
        made = SampledReadout(
            feed.counts, WIDTH, batch=feed.batch, optimiser=SGD(RATE), loss=NegativeSampling(NEGATIVES)
        )
    return Engine(embedding, None, made, threads=threads, pipeline=Pipeline(update="online")), feed


def _expect_finite(vectors: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise AssertionError("vectors are not finite")
