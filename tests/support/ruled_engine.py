"""Engines whose rows and readout learn by an optimiser, and a feed with values of ids and weights of examples."""

import numpy as np

from hybrid import SGD, Batched, HeadParts, backend
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.optimisers import ROWS, named
from hybrid.readout import FullReadout, HeadReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from tests.support.placed_engine import Ragged
from tests.support.small_engine import BATCH, CLASSES, Feed, through

READOUTS = {
    "tree": lambda **more: TreeReadout(Feed.counts, 6, batch=BATCH, **more),
    "tree by groups": lambda **more: TreeReadout(Feed.counts, 6, batch=BATCH, mode=Batched(1), **more),
    "head": lambda **more: HeadReadout(Feed.counts, 6, batch=BATCH, parts=HeadParts(7, 3), **more),
    "full": lambda **more: FullReadout(Feed.counts, 6, batch=BATCH, **more),
}


class Weighed(Ragged):
    """Bags of ids with values, and examples with weights, of which some are 0; every third batch has no weights."""

    def __getitem__(self, tick):
        batch, rng = super().__getitem__(tick), np.random.default_rng([self.seed, tick, 1])
        weight = (rng.integers(0, 3, BATCH) / 2).astype(np.float32) if tick % 3 else None
        return batch._replace(values=rng.normal(size=len(batch.ids)).astype(np.float32), weight=weight)


def ruled(readout="tree", optimiser="adagrad", place="cuda:0", trunk="cuda:0", **options):
    move = named(optimiser, ROWS, rate=0.05)
    embedding = Embedding(CLASSES, 4, bags="weighted", optimiser=move, spread=0.3, backend=backend.choose(place))
    output = READOUTS[readout](biases=True, backend=backend.choose(place), optimiser=move)
    dense = MLP([embedding.outputs, 10, 6], optimiser=SGD(0.1, momentum=0.5))
    return Engine(embedding, dense, output, device=trunk, **through(options))
