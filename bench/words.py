"""word2vec: one epoch of skip-gram and CBOW with hierarchical softmax, ours beside gensim."""

import os
from pathlib import Path

import numpy as np

from bench.measure import Work, append, measure, show
from hybrid import similarity
from hybrid.embedding import Embedding
from hybrid.engine import Engine
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.text import Corpus, Text, documentation, read
from hybrid.readout import TreeReadout
from hybrid.vocabulary import Vocabulary

WIDTH, WINDOW, SAMPLE, MIN_COUNT, RATE, EPOCHS = 100, 5, 1e-3, 5, 0.025, 5
MODE = "runs"  # what `hybrid train words` takes


def run(arguments) -> None:
    """One epoch is timed; then, unless --quick, both learn five and are asked for WordSim-353 and SimLex-999."""
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
        if not arguments.quick:
            vectors = [_learn(corpus, model, EPOCHS, arguments.threads)]
            vectors += [_gensim_rows(sentences, corpus, model, arguments.threads)] * (len(rivals) - 1)
            for record, rows in zip(records, vectors, strict=True):
                record["quality"] = _quality(corpus, rows)
                print(f"  {record['who']}: after {EPOCHS} epochs {record['quality']}")
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


def _learn(corpus: Corpus, model: str, epochs: int, threads: int, losses: list | None = None) -> np.ndarray:
    """Train from the start; returns the rows (V, D)."""
    feed = PairFeed(corpus, model=model, window=WINDOW, sample=SAMPLE, mean_batch=4096, epochs=epochs)
    embedding = Embedding(feed.rows, WIDTH, mean=model == "cbow", undivided=True, rate=RATE)
    engine = Engine(
        embedding, None, TreeReadout(feed.counts, WIDTH, mode=MODE, batch=feed.batch, rate=RATE), threads=threads
    )
    found = [tick.loss for tick in engine.run(feed)]
    if losses is not None:
        losses[:] = found
    return embedding.table


def _ours(corpus: Corpus, tokens: int, model: str, threads: int) -> Work:
    losses: list[float] = []

    def check():
        first, last = np.nanmean(losses[:10]), np.nanmean(losses[-10:])
        if not last < first - 0.05:  # nats: skip-gram has much entropy, and begins at that of single words
            raise AssertionError(f"the loss fell from {first} to {last} only")

    def epoch():
        _learn(corpus, model, 1, threads, losses)

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
    try:
        import gensim
    except ImportError:
        print("gensim is missing: pip install .[bench]")
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


def _gensim_rows(sentences, corpus: Corpus, model: str, threads: int) -> np.ndarray:
    """gensim's vectors after as many epochs, in the order of our vocabulary."""
    built = _gensim_model(sentences, model, threads)
    built.train(sentences, total_examples=built.corpus_count, epochs=EPOCHS)
    return np.stack([built.wv[word] for word in corpus.vocabulary.words])


def _quality(corpus: Corpus, rows: np.ndarray) -> dict[str, float]:
    """Spearman's rho on the files that HYBRID_DATA has."""
    folder = Path(os.environ.get("HYBRID_DATA", "data")) / "similarity"
    files = [folder / "wordsim353.tsv", folder / "simlex999.txt"]
    words = corpus.vocabulary.words
    return {path.stem: round(similarity.agreement(path, words, rows).rho, 3) for path in files if path.exists()}
