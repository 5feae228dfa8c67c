"""Swap the output layer of a PyTorch language model by one line: a tree in place of an adaptive softmax.

An LSTM learns from the documentation that every Python carries, or from a text of yours. You see how many tokens a second the
whole model learns from, and the perplexity of a tenth of the text that is held out. The more words, the more the tree gains.

    python examples/torch_language_model.py --epochs 4
"""

import argparse
import time

import numpy as np
import torch

from hybrid import Corpus, Vocabulary, text
from hybrid.torch import TreeLoss

WIDTH, STREAMS, STEPS = 64, 16, 20
LAYERS = {
    "tree": lambda counts: TreeLoss(WIDTH, counts),
    "adaptive": lambda counts: torch.nn.AdaptiveLogSoftmaxWithLoss(
        WIDTH, len(counts), [len(counts) // 8, len(counts) // 2]
    ),
}


def segments(ids):
    """The text in STREAMS columns, STEPS tokens at a time, and the tokens after them."""
    columns = ids[: len(ids) // STREAMS * STREAMS].view(STREAMS, -1).t().contiguous()
    for at in range(0, len(columns) - 1, STEPS):
        target = columns[at + 1 : at + 1 + STEPS]
        yield columns[at : at + len(target)], target


class Model(torch.nn.Module):
    """Rows of words, an LSTM, and an output layer that is called (hidden, target) -> (output, loss)."""

    def __init__(self, counts, layer):
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(len(counts), WIDTH)
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH)
        self.layer = layer(counts)

    def forward(self, ids, target):
        hidden, _ = self.lstm(self.rows(ids))
        return self.layer(hidden.reshape(-1, WIDTH), target.reshape(-1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a file, one sentence or paragraph a line (default: Python's documentation)")
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()

    whole = text.read(arguments.text) if arguments.text else text.documentation()
    parts = whole.split(valid=0.1, test=0.0, seed=0)
    vocabulary = Vocabulary.build(parts.train, min_count=2)
    train, valid = (torch.from_numpy(Corpus(part, vocabulary).ids).long() for part in parts[:2])
    counts = np.bincount(train, minlength=len(vocabulary))
    print(f"{len(train):,} words to learn from, {len(counts):,} different\n\nlayer     tokens/s  perplexity")
    for name, layer in LAYERS.items():
        model = Model(counts, layer)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
        begun = time.perf_counter()
        for _ in range(arguments.epochs):
            for ids, target in segments(train):
                optimiser.zero_grad()
                model(ids, target).loss.backward()
                optimiser.step()
        speed = arguments.epochs * len(train) / (time.perf_counter() - begun)
        model.eval()
        with torch.no_grad():
            output = torch.cat([model(ids, target).output for ids, target in segments(valid)])
        print(f"{name:<9} {speed:>8,.0f}  {(-output.mean()).exp():>10.1f}")


if __name__ == "__main__":
    main()
