"""word2vec: one epoch of skip-gram and CBOW with hierarchical softmax, ours beside gensim."""

import os
from pathlib import Path

import numpy as np

from bench.measure import Work, append, measure, show
from bench.peers import peer
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.text import Corpus, Text, documentation, read
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.models.words import batch_of
from hybrid.readout import TreeReadout

WIDTH, WINDOW, SAMPLE, MIN_COUNT, RATE = 100, 5, 1e-3, 5, 0.025
MODE = "grouped"  # what `hybrid train words` takes


def run(arguments) -> None:
    """One epoch is timed; how good vectors get is measured by word_quality."""
    text = _text(arguments.quick)
    sentences = list(text)
    corpus = Corpus(text, Vocabulary.build(text, min_count=MIN_COUNT, unknown=False))
    tokens = sum(map(len, sentences))
    for model in ("skipgram", "cbow"):
        rivals = [
            _ours(corpus, tokens, model, arguments.threads),
            *_gensim(sentences, tokens, model, arguments.threads),
        ]
        records = measure(rivals, arguments.repeat)
        show(records)
        append(arguments.json, records)


def _text(quick: bool) -> Text:
    """WikiText-2 where HYBRID_DATA has it, without its <unk>, else Python's documentation."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2" / "train.txt"
    if quick or not path.exists():
        print(f"text: Python's documentation, not {path} (HYBRID_DATA names the folder that holds wikitext-2/)")
        return documentation()
    text = read(path, tokens="whitespace")
    kept = (" ".join(word for word in line.lower().split() if word != "<unk>") for line in text.sentences)
    return Text([line for line in kept if line], tokens="whitespace", source=str(path))


def _learn(corpus: Corpus, model: str, threads: int) -> list[float]:
    """Train for an epoch from the start; returns the losses."""
    feed = PairFeed(corpus, model=model, window=WINDOW, sample=SAMPLE, mean_batch=batch_of(len(corpus.vocabulary)))
    embedding = Embedding(feed.rows, WIDTH, mean=model == "cbow", undivided=True, rate=RATE)
    readout = TreeReadout(feed.counts, WIDTH, mode=MODE, batch=feed.batch, rate=RATE)
    return [tick.loss for tick in Engine(embedding, None, readout, threads=threads).run(feed)]


def _ours(corpus: Corpus, tokens: int, model: str, threads: int) -> Work:
    losses: list[float] = []

    def check():
        first, last = np.nanmean(losses[:10]), np.nanmean(losses[-10:])
        if not last < first - 0.05:  # nats: skip-gram has much entropy, and begins at that of single words
            raise AssertionError(f"the loss fell from {first} to {last} only")

    def epoch():
        losses[:] = _learn(corpus, model, threads)

    return Work(
        f"words.{model}", "ours", _params(corpus) | {"mode": MODE}, tokens, "words/s", epoch, check, threads=threads
    )


def _params(corpus: Corpus) -> dict:
    return {"tokens": len(corpus), "words": len(corpus.vocabulary), "width": WIDTH, "window": WINDOW, "readout": "tree"}


def _gensim_model(sentences, model: str, threads: int):
    from gensim.models import Word2Vec

    built = Word2Vec(
        vector_size=WIDTH,
        window=WINDOW,
        min_count=MIN_COUNT,
        sample=SAMPLE,
        sg=int(model == "skipgram"),
        hs=1,
        negative=0,
        alpha=RATE,
        workers=threads,
        cbow_mean=1,
    )
    built.build_vocab(sentences)
    return built


def _gensim(sentences, tokens: int, model: str, threads: int) -> list[Work]:
    gensim = peer("gensim")
    if not gensim:
        return []
    built = _gensim_model(sentences, model, threads)

    def epoch():
        built.train(sentences, total_examples=built.corpus_count, epochs=1)

    def check():
        if not np.isfinite(built.wv.vectors).all():
            raise AssertionError("gensim's vectors are not finite")

    params: dict = {"tokens": sum(int(built.wv.get_vecattr(word, "count")) for word in built.wv.index_to_key)}
    params |= {"words": len(built.wv), "width": WIDTH, "window": WINDOW, "readout": "tree"}
    return [
        Work(f"words.{model}", f"gensim {gensim.__version__}", params, tokens, "words/s", epoch, check, threads=threads)
    ]
