"""Ranks whose engine has a table of 64 MiB, each with less memory left than that; rank 0 says what became of it.

    rank_engine_memory.py FOLDER   where the engine is saved, and loaded from

A small one is trained before the limit: so all kernels are compiled, and all of Python's modules are there.
"""

import resource
import sys
from pathlib import Path

import numba
import numpy as np

from bench.shards_rank import peak
from hybrid.engine import Engine
from hybrid.engine.trunk.mlp import MLP
from hybrid.feeds import Batch
from hybrid.ranks.group import Group
from hybrid.sharded.embedding import ShardedEmbedding
from hybrid.sharded.tree import ShardedTree

ROWS, WIDTH, CLASSES, BATCH = 2**16, 256, 2000, 64
ROOM = 48 * 2**20  # bytes: a quarter of the table, and 32 MiB for a batch and pieces of the table on their way


class Feed:
    """The same batch in every tick."""

    epochs, ticks_per_epoch, classes, batch, most_ids = 1, 4, CLASSES, BATCH, BATCH
    counts = 10**4 // np.arange(1, CLASSES + 1)

    def __init__(self, rows):
        rng = np.random.default_rng(0)
        ids, target = (rng.integers(0, most, BATCH).astype(np.int32) for most in (rows, CLASSES))
        self.rows, self.only = rows, Batch(ids, None, target)

    def __len__(self):
        return self.ticks_per_epoch

    def __getitem__(self, tick):
        return self.only


def trained(group: Group, folder: Path, rows: int) -> tuple[float, float]:
    """The loss of the first tick, and that of the engine that was saved and loaded at the end."""
    feed = Feed(rows)
    machine = {"ranks": group, "threads": 1, "device": "cpu"}
    table = ShardedEmbedding(group, rows, WIDTH, rate=0.5)
    tree = ShardedTree(group, Feed.counts, 8, batch=BATCH, rate=0.1)
    engine = Engine(table, MLP((WIDTH, 8), rate=0.5), tree, micro_batches=4, **machine)
    losses = [tick.loss for tick in engine.run(feed)]
    own = 4 * rows * WIDTH // group.size
    assert engine.parameters()["embedding.table"].nbytes == own and table.table.nbytes == own
    engine.save(folder / str(rows))
    del engine, table, tree
    return losses[0], Engine.load(folder / str(rows), sharded=True, **machine)[0].evaluate(feed)


def main() -> None:
    folder, group = Path(sys.argv[1]), Group()
    numba.set_num_threads(1)
    trained(group, folder, 1024)
    limit = peak("VmSize") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        first, last = trained(group, folder, ROWS)
    except MemoryError:
        print("no memory")
        return
    print("trained" if last < first else (first, last))


if __name__ == "__main__":
    main()
