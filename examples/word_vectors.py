"""Learn word vectors (skip-gram over a Huffman tree, as word2vec does), list nearest words, and write them for others.

The text is a file of yours or, by default, sentences made of words of four families, where words of one family stand
together. You see for some words the nearest ones by cosine; the file that is written has word2vec's format, and gensim's
`KeyedVectors.load_word2vec_format` and others open it.

    python examples/word_vectors.py --text book.txt --words king,queen,sword --out vectors
"""

import argparse
from pathlib import Path

import numpy as np

from hybrid import SGD, Corpus, Embedding, Engine, PairFeed, Text, TreeReadout, Vectors, Vocabulary, text, vectors

FAMILIES = {
    "kitchen": "bread butter cheese knife oven pepper pot salt soup spoon",
    "garden": "apple bee flower grass hedge leaf rain rose seed tree",
    "sea": "anchor boat captain fish harbour net sail storm tide wave",
    "music": "bow chord drum flute melody note piano rhythm song violin",
}


def made(sentences=3000, seed=0) -> Text:
    """Sentences of eight words of one family each, with small words that stand everywhere between them."""
    rng = np.random.default_rng(seed)
    families = [words.split() for words in FAMILIES.values()]
    small = "the a of and with".split()
    drawn = rng.integers(0, len(families), sentences)
    words = ((*rng.choice(families[family], 8, replace=False), *rng.choice(small, 4)) for family in drawn)
    return Text([" ".join(rng.permutation(sentence)) for sentence in words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a UTF-8 text file (default: made)")
    parser.add_argument("--words", default="bread,rose,anchor,song", help="whose neighbours are listed")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", default="examples/out", help="the folder of vectors.txt")
    arguments = parser.parse_args()

    sentences = text.read(arguments.text) if arguments.text else made()
    vocabulary = Vocabulary.build(sentences, min_count=5, unknown=False)
    batch = min(max(len(vocabulary) // 5, 32), 4096)  # small, so that a batch meets no row too often
    feed = PairFeed(Corpus(sentences, vocabulary), window=5, sample=1e-2, mean_batch=batch, epochs=arguments.epochs)
    # Without a trunk the row of a word is the hidden vector.
    engine = Engine(
        Embedding(feed.rows, 50, optimiser=SGD(0.025)), None, TreeReadout(feed.counts, 50, batch=feed.batch)
    )
    for _ in engine.run(feed):
        pass

    learned = Vectors(vocabulary.words, engine.embedding.table)
    print(f"{len(feed.corpus):,} tokens, {len(vocabulary):,} words, {engine.size:,} parameters\n")
    print("word      nearest")
    for word in arguments.words.split(","):
        print(f"{word:<8}  {', '.join(near for near, _ in learned.most_similar(word, topn=5))}")
    file = Path(arguments.out) / "vectors.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    vectors.save(file, learned.words, learned.rows)
    print(f"\nwritten: {file}")


if __name__ == "__main__":
    main()
