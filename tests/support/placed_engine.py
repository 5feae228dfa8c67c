"""The small engine with rows and readout where a test wants them."""

import numpy as np

from hybrid import SGD, HeadParts, backend
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.readout import FullReadout, HeadReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from tests.support.small_engine import BATCH, CLASSES, Feed, of_context, through

READOUTS = {  # on the host, on the device, on both
    "host": lambda: TreeReadout(Feed.counts, 6, batch=BATCH, optimiser=SGD(0.05)),
    "device": lambda: FullReadout(Feed.counts, 6, batch=BATCH, backend=backend.choose("cuda:0"), optimiser=SGD(0.05)),
    "both": lambda: HeadReadout(
        Feed.counts, 6, batch=BATCH, backend=backend.choose("cuda:0"), optimiser=SGD(0.05), parts=HeadParts(7, 3)
    ),
}


class Ragged(Feed):
    """Bags of 0 to 5 ids, so that no two batches have as many."""

    most_ids = 5 * BATCH

    def __getitem__(self, tick):
        rng = np.random.default_rng([self.seed, tick])
        bag_at = np.concatenate([[0], np.cumsum(rng.integers(0, 6, BATCH))])
        ids, target = (rng.integers(0, CLASSES, size).astype(np.int32) for size in (bag_at[-1], BATCH))
        return super().__getitem__(tick)._replace(ids=ids, bag_at=bag_at, target=target)


def placed(rows="cuda:0", readout="host", bags=False, trunk="cuda:0", **options):
    embedding = Embedding(CLASSES, 4, **of_context(bags), optimiser=SGD(0.05), spread=0.3, backend=backend.choose(rows))
    dense = MLP([embedding.outputs, 10, 6], optimiser=SGD(0.1, momentum=0.5))
    return Engine(embedding, dense, READOUTS[readout](), device=trunk, **through(options))
