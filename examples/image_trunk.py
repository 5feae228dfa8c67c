"""Put small convolutional nets of PyTorch, one like AlexNet and one like ResNet, under a tree of 100,000 classes.

An image shows five digits, each as one of ten glyphs among noise; its class is the number that they make. A full softmax
would multiply every hidden vector by 100,000 rows; the tree touches 17. You see the loss fall from ln 100,000 = 11.5.

    python examples/image_trunk.py --nets resnet --ticks 600
"""

import argparse

import numpy as np
import torch
from torch import nn

from hybrid import SGD, ArrayFeed, Engine, Inputs, TorchTrunk, TreeReadout

CLASSES, DIGITS, SIDE, HIDDEN, BATCH = 100_000, 5, 8, 64, 64


def images(count, seed):
    """Images of numbers, (count, SIDE * DIGITS * SIDE), and the numbers."""
    glyphs = np.random.default_rng(0).choice([-1, 1], (10, SIDE, SIDE)).astype(np.float32)
    numbers = (rng := np.random.default_rng(seed)).integers(0, CLASSES, count)
    digits = numbers[:, None] // 10 ** np.arange(DIGITS)[::-1] % 10
    drawn = glyphs[digits].transpose(0, 2, 1, 3).reshape(count, -1)
    return drawn + rng.normal(0, 0.3, drawn.shape).astype(np.float32), numbers


def alexnet():
    """Wide windows first, pooling, narrow ones, dropout before what is dense."""
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, DIGITS * SIDE)),
        *(nn.Conv2d(1, 24, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1)),
        *(nn.Linear(32 * 2 * DIGITS * 2, 128), nn.ReLU(), nn.Linear(128, HIDDEN), nn.Tanh()),
    )


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, width):
        super().__init__()
        a, b = (nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)) for _ in range(2))
        self.inner = nn.Sequential(a, nn.ReLU(), b)

    def forward(self, x):
        return torch.relu(x + self.inner(x))


def resnet():
    """Residual blocks; the last layer sees where in the image what is, since the order of the digits counts."""
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, DIGITS * SIDE)),
        *(nn.Conv2d(1, 24, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), Block(24), Block(24)),
        *(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(24 * 2 * DIGITS * 2, HIDDEN), nn.Tanh()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default="alexnet,resnet", help="default: both")
    parser.add_argument("--ticks", type=int, default=300, help=f"batches of {BATCH} images")
    arguments = parser.parse_args()

    feed = ArrayFeed(*images(BATCH * arguments.ticks, seed=1), classes=CLASSES, batch=BATCH)
    unseen = ArrayFeed(*images(1024, seed=2), classes=CLASSES, batch=BATCH)
    print(f"{BATCH * arguments.ticks:,} images of {CLASSES:,} classes; loss of 1,024 unseen ones:")
    for name in arguments.nets.split(","):
        torch.manual_seed(0)
        net = {"alexnet": alexnet, "resnet": resnet}[name]()
        trunk = TorchTrunk(net, feed.width, HIDDEN, optimiser=torch.optim.Adam(net.parameters(), lr=0.002), threads=1)
        engine = Engine(Inputs(feed.width), trunk, TreeReadout(CLASSES, HIDDEN, tree="balanced", optimiser=SGD(0.1)))
        before, _ = engine.evaluate(unseen), list(engine.run(feed))
        print(f"{name:<8} {engine.size:,} parameters: {before:.2f} -> {engine.evaluate(unseen):.2f}")


if __name__ == "__main__":
    main()
