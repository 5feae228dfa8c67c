"""Put an LSTM or a small causal transformer of PyTorch between our rows and our tree: two language models.

The text is cut into windows of 16 words, and every position of a window predicts the word that follows it. Module and
optimiser are PyTorch's; rows and tree move by themselves. You see the perplexity of a held-out tenth of the text fall, epoch
by epoch, and what each model holds most likely after a few words.

    python examples/sequence_trunk.py --text book.txt --nets transformer
"""

import argparse
import math

import torch

from hybrid import SGD, Corpus, Embedding, Engine, Pipeline, SequenceFeed, TorchTrunk, TreeReadout, Vocabulary, text

LENGTH, WIDTH = 16, 64


class Lstm(torch.nn.Module):
    """(B, T, width) -> (B, T, width), from left to right."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class Transformer(torch.nn.Module):
    """(B, T, width) -> (B, T, width); no position sees a later one."""

    def __init__(self):
        super().__init__()
        self.place = torch.nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.register_buffer("later", torch.nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, x):
        return self.layers(x + self.place, mask=self.later, is_causal=True)


NETS = {"lstm": Lstm, "transformer": Transformer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a UTF-8 text file (default: the documentation that every Python carries)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--nets", default="lstm,transformer", help="default: both")
    parser.add_argument("--ask", default="the value of the", help="a beginning")
    arguments = parser.parse_args()

    parts = (text.read(arguments.text) if arguments.text else text.documentation()).split(valid=0.1)
    vocabulary = Vocabulary.build(parts.train, min_count=2)
    train, valid = (Corpus(part, vocabulary) for part in parts[:2])
    feed = SequenceFeed(train, length=LENGTH, epochs=arguments.epochs, running=True)
    held_out = SequenceFeed(valid, length=LENGTH, running=True, seed=None)
    print(f"{len(train):,} words to learn from, {len(vocabulary):,} different; perplexity of {len(valid):,} others:")
    for name in arguments.nets.split(","):
        torch.manual_seed(0)
        net = NETS[name]()
        adam = torch.optim.Adam(net.parameters(), lr=0.003)
        trunk = TorchTrunk(net, WIDTH, WIDTH, optimiser=adam, clip=1.0, sequence=LENGTH, threads=1)
        rows = Embedding(feed.rows, WIDTH, spread=0.2, optimiser=SGD(0.2))
        tree = TreeReadout(feed.counts, WIDTH, optimiser=SGD(0.03))
        engine = Engine(rows, trunk, tree, pipeline=Pipeline(micro_batches=2))
        found = [f"{math.exp(engine.evaluate(held_out)):8.1f}"]
        for tick in engine.run(feed):
            if (tick.number + 1) % feed.ticks_per_epoch == 0:
                found.append(f"{math.exp(engine.evaluate(held_out)):8.1f}")
        ids, last = feed.question([vocabulary.encode(arguments.ask.split())])
        best, _ = engine.readout.best(engine.hidden(ids)[last], 5)
        print(f"{name:<11}" + "".join(found) + f"   {arguments.ask}: {' '.join(vocabulary.decode(best[0]))}")


if __name__ == "__main__":
    main()
