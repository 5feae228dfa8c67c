"""Recommend the next item by self-attention over a history, as SASRec (Kang and McAuley 2018), under our softmax.

Every position of a history predicts the item that follows it, so the order counts. Ratings are a file, or made: users go
through series, part by part, and now and then change to another one. You see how often the held-out last item is among ten
recommended, beside the ten items that are taken most.

    python examples/sasrec_trunk.py --ratings u.data
"""

import argparse

import numpy as np
import torch

from hybrid import SGD, Embedding, Engine, FullReadout, SequenceFeed, TorchTrunk, ratings

LENGTH, WIDTH = 16, 48


def made(users=800, each=18, series=30, parts=12, seed=0) -> ratings.Ratings:
    """Ratings of users who take the next part of the series that they are in, or change to another one."""
    rng = np.random.default_rng(seed)
    item = []
    for _ in range(users):
        at, part = rng.integers(series), 0
        for _ in range(each):
            item.append(f"series {at} part {part}")
            if rng.random() < 0.2 or part == parts - 1:
                at, part = rng.integers(series), rng.integers(3)
            else:
                part += 1
    return ratings.from_columns(np.repeat(np.arange(users), each), item, np.arange(len(item)))


class SelfAttention(torch.nn.Module):
    """(B, T, width) -> (B, T, width): where in the window, dropout, two layers that see no later position."""

    def __init__(self):
        super().__init__()
        self.place = torch.nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.drop = torch.nn.Dropout(0.2)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, dropout=0.2, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.register_buffer("later", torch.nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, x):
        return self.layers(self.drop(x + self.place), mask=self.later, is_causal=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", help="a file of ratings (default: made)")
    parser.add_argument("--epochs", type=int, default=12)
    arguments = parser.parse_args()

    parts = ratings.split(ratings.histories(ratings.load(arguments.ratings) if arguments.ratings else made()))
    feed = SequenceFeed(parts.train, length=LENGTH, windows=64, epochs=arguments.epochs, start=False)
    torch.manual_seed(0)
    net = SelfAttention()
    adam = torch.optim.Adam(net.parameters(), lr=0.003, betas=(0.9, 0.98))
    trunk = TorchTrunk(net, WIDTH, WIDTH, optimiser=adam, sequence=LENGTH, threads=1)
    rows = Embedding(feed.rows, WIDTH, spread=0.2, optimiser=SGD(0.2))
    engine = Engine(rows, trunk, FullReadout(feed.counts, WIDTH, batch=feed.batch, optimiser=SGD(0.01)))
    losses = [tick.loss for tick in engine.run(feed)]
    first, last = (np.mean(part) for part in np.split(losses, [feed.ticks_per_epoch, -feed.ticks_per_epoch])[::2])
    print(f"{len(parts.train.users):,} users, {feed.classes:,} items; loss {first:.2f} in the first epoch,")
    print(f"{last:.2f} in the last, {last / first:.0%} of the first\n")

    seen, last = parts.seen, parts.test
    ids, at = feed.question([seen.item[seen.at[user] : seen.at[user + 1]] for user in last.user])
    best, _ = engine.readout.best(engine.hidden(ids)[at], 10)
    print(f"among ten recommended     {(best == last.item[:, None]).any(axis=1).mean():.1%}")
    print(f"among the ten most taken  {(last.item < 10).mean():.1%}")  # items are numbered by how often they are taken


if __name__ == "__main__":
    main()
