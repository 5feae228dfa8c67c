"""Train a language model on a text of your own, and ask it for the next words.

A tree stands over the vocabulary, so a step costs log V rows, not V. You see the perplexity on a held-out tenth of the
text fall, epoch by epoch; then the five words that the model holds most likely after a few beginnings, with their
probabilities, found by an exact search of the tree.

    python examples/own_text.py --text book.txt --ask "it was the" --ask "she said that"
"""

import argparse
import math

from hybrid import (
    MLP,
    SGD,
    Corpus,
    Embedding,
    Engine,
    LanguageFeed,
    LanguageModel,
    Pipeline,
    TreeReadout,
    Vocabulary,
    text,
)

CONTEXT = 4  # words that the model sees before the one it predicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a UTF-8 text file (default: the documentation that every Python carries)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--ask", action="append", help="a beginning; may be given several times")
    arguments = parser.parse_args()

    train, valid, _ = (text.read(arguments.text) if arguments.text else text.documentation()).split(valid=0.1)
    vocabulary = Vocabulary.build(train, min_count=2)
    feed = LanguageFeed(Corpus(train, vocabulary), context=CONTEXT, epochs=arguments.epochs)
    held_out = LanguageFeed(Corpus(valid, vocabulary), context=CONTEXT, seed=None)
    print(f"{len(feed.corpus):,} words to learn from, {len(held_out.corpus):,} held out, {len(vocabulary):,} different")

    engine = Engine(
        Embedding(feed.rows, 64, per_example=CONTEXT, spread=0.1, optimiser=SGD(0.2)),
        MLP([64 * CONTEXT, 128, 64], optimiser=SGD(0.2, momentum=0.9)),
        TreeReadout(feed.counts, 64, optimiser=SGD(0.02)),
        pipeline=Pipeline(micro_batches=2),
    )
    print("\nepoch  perplexity of the held-out text")
    print(f"{0:>5}  {math.exp(engine.evaluate(held_out)):10.1f}")
    for tick in engine.run(feed):
        if (tick.number + 1) % feed.ticks_per_epoch == 0:
            print(f"{(tick.number + 1) // feed.ticks_per_epoch:>5}  {math.exp(engine.evaluate(held_out)):10.1f}")

    model = LanguageModel(engine, vocabulary)
    print("\nbeginning               the next word")
    for beginning in arguments.ask or ["the value of the", "if the class defines", "raised when an"]:
        words = model.next(beginning, k=5)
        print(f"{beginning:<22}  " + "  ".join(f"{word} {share:.0%}" for word, share in words))


if __name__ == "__main__":
    main()
