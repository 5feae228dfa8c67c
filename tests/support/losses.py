"""A loss of every kind for PyTorch, batches for it, and what a test asks of it."""

import numpy as np
import torch

from hybrid import HeadParts, SampledSoftmax
from hybrid.torch import FullLoss, HeadLoss, SampledLoss, TreeLoss
from tests.support.readouts import rated

CLASSES, WIDTH = 37, 6
COUNTS = np.arange(CLASSES)[::-1] + 1
MAKE = {
    "huffman": lambda **more: TreeLoss(WIDTH, COUNTS, **more),
    "balanced": lambda **more: TreeLoss(WIDTH, CLASSES, **more),
    "full": lambda **more: FullLoss(WIDTH, COUNTS, **more),
    "head": lambda **more: HeadLoss(WIDTH, COUNTS, parts=HeadParts(head=9, clusters=5), **more),
    "sampled": lambda **more: SampledLoss(WIDTH, COUNTS, **{"loss": SampledSoftmax(20)} | more),
    "logistic": lambda **more: SampledLoss(WIDTH, COUNTS, loss="logistic", **more),
}
MAKE = {kind: rated(make) for kind, make in MAKE.items()}  # by plain SGD, whose steps are the slopes


def batch(*shape, seed=0, grad=True):
    """Hidden vectors (*shape, WIDTH) and a class for each."""
    drawn = torch.Generator().manual_seed(seed)
    hidden = torch.randn(*shape, WIDTH, generator=drawn).requires_grad_(grad)
    return hidden, torch.randint(0, CLASSES, shape, generator=drawn)


def trained(loss, steps=5):
    """The loss after some steps, so that its gradients are not zero."""
    for seed in range(steps):
        loss(*batch(16, seed=100 + seed)).loss.sum().backward()
    return loss


def frozen(loss):
    """All that has been learned, as bytes."""
    return b"".join(value.numpy().tobytes() for value in loss.state_dict().values())


def learned(loss):
    """A copy of the weights or nodes."""
    return next(iter(loss.state_dict().values())).clone()
