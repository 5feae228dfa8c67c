"""A loss of every kind for PyTorch, batches for it, and what a test asks of it."""

import numpy as np
import torch

from hybrid.torch import FullLoss, HeadLoss, SampledLoss, TreeLoss

CLASSES, WIDTH = 37, 6
COUNTS = np.arange(CLASSES)[::-1] + 1
SGD = {"optimiser": "sgd"}
MAKE = {  # by plain SGD, whose steps are the slopes
    "huffman": lambda **more: TreeLoss(WIDTH, COUNTS, **SGD | more),
    "balanced": lambda **more: TreeLoss(WIDTH, CLASSES, **SGD | more),
    "split": lambda **more: TreeLoss(WIDTH, COUNTS, split=5, **SGD | more),
    "full": lambda **more: FullLoss(WIDTH, COUNTS, **SGD | more),
    "head": lambda **more: HeadLoss(WIDTH, COUNTS, head=9, clusters=5, **SGD | more),
    "sampled": lambda **more: SampledLoss(WIDTH, COUNTS, **SGD | {"negatives": 20} | more),
    "logistic": lambda **more: SampledLoss(WIDTH, COUNTS, loss="logistic", **SGD | more),
}


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
