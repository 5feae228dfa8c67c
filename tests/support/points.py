"""Points of a table, as ids or as numbers, and engines that learn from them."""

import numpy as np

from hybrid import SGD
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding, Inputs
from hybrid.feeds import Batch
from hybrid.readout import TreeReadout
from hybrid.trunk.mlp import MLP
from tests.support.small_engine import through

WIDTH, CLASSES, SIZE, POINTS = 5, 9, 12, 40
TABLE = np.random.default_rng(0).normal(size=(POINTS, WIDTH)).astype(np.float32)


class Points:
    """Points of a table as ids, or as numbers."""

    classes, batch, epochs, ticks_per_epoch = CLASSES, SIZE, 1, 8
    counts = np.arange(CLASSES, 0, -1)

    def __init__(self, dense):
        self.dense = dense
        self.width, self.rows, self.most_ids = (WIDTH, 0, 0) if dense else (0, POINTS, SIZE)

    def __len__(self):
        return self.ticks_per_epoch

    def __getitem__(self, tick):
        ids = np.random.default_rng(tick).integers(0, POINTS, SIZE - tick % 3).astype(np.int32)
        target = ids % CLASSES
        return Batch(None, None, target, x=TABLE[ids]) if self.dense else Batch(ids, None, target)

    def describe(self):
        return {"kind": "points"}


class Given:
    """The batches of a list, with numbers in the place of ids."""

    rows = most_ids = 0
    epochs = 1

    def __init__(self, classes, *batches):
        self.batches, self.classes, self.counts = batches, classes, np.ones(classes, np.int64)
        self.width, self.ticks_per_epoch = batches[0].x.shape[1], len(batches)
        self.batch = max(batch.examples for batch in batches)
        self.most_targets = max(len(batch.target) for batch in batches)

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, tick):
        return self.batches[tick]


def engine(dense, trunk=True, kind=TreeReadout, **options):
    source = Inputs(WIDTH) if dense else Embedding(POINTS, WIDTH, optimiser=SGD(0.0))
    if not dense:
        source.table[:] = TABLE
    net = MLP([WIDTH, 8, 4], optimiser=SGD(0.1, momentum=0.5)) if trunk else None
    readout = kind(Points.counts, 4 if trunk else WIDTH, batch=SIZE, optimiser=SGD(0.05))
    return Engine(source, net, readout, **through(options))
