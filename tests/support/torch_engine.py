"""Small engines whose trunk is a module of PyTorch."""

import functools

import torch

from hybrid import SGD
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.readout import TreeReadout
from hybrid.trunk.torch import TorchTrunk
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, through

WIDTH = 4 * CONTEXT
adam = functools.partial(torch.optim.Adam, lr=0.01)


def net(seed=0):
    """With dropout and running means."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        nn = torch.nn
        layers = nn.Linear(WIDTH, 20), nn.BatchNorm1d(20), nn.Tanh(), nn.Dropout(0.3), nn.Linear(20, 6)
        return nn.Sequential(*layers)


def engine(module=None, optimiser=adam, trunk=None, **options):
    trunk = trunk or TorchTrunk(module or net(), WIDTH, 6, optimiser=optimiser, clip=5.0)
    rows = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3, optimiser=SGD(0.05))
    readout = TreeReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05))
    return Engine(rows, trunk, readout, **through(options))
