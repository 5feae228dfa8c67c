"""Ranks that save the shards of an embedding and a tree, or load them and go on.

save FOLDER   learn for some ticks, then save
load FOLDER   load, learn for some more, save again
fail FOLDER   save to a folder that rank 0 cannot write; rank 0 says what all were told
"""

import sys

import numba
import numpy as np

from hybrid.engine.embedding import Embedding
from hybrid.ranks.group import Group
from hybrid.readout import TreeReadout
from hybrid.sharded import saved
from hybrid.sharded.embedding import ShardedEmbedding
from hybrid.sharded.tree import ShardedTree

ROWS, WIDTH, BATCH = 203, 9, 20
COUNTS = 10**4 // np.arange(1, ROWS + 1)
MOVES = {"optimiser": "row-adagrad", "rate": 0.3}
TREE = {"owners": 8, "biases": True, "batch": BATCH, **MOVES}


def main() -> None:
    what, folder = sys.argv[1:]
    numba.set_num_threads(1)
    group = Group()
    rows, tree = ShardedEmbedding(group, ROWS, WIDTH, **MOVES), ShardedTree(group, COUNTS, WIDTH, **TREE)
    arrays = {f"embedding.{name}": array for name, array in rows.saved().items()}
    arrays |= {f"readout.{name}": array for name, array in tree.saved().items()}
    ticks = 0
    if what == "load":
        ticks = saved.load(group, folder, arrays)["ticks"]
    for tick in range(ticks, ticks + 3):
        learn(tick, rows, tree)
    try:
        saved.save(group, folder, arrays, {"ticks": ticks + 3})
    except OSError as error:
        told = np.array([-len(str(error))])
        group.most(told)
        print("all were told" if told[0] < 0 else "one was not", str(error).split(": ")[0], flush=True)


def learn(tick: int, rows: Embedding, tree: "TreeReadout | ShardedTree") -> None:
    """A tick of a model without a trunk."""
    rng = np.random.default_rng(tick)
    ids, target = rng.integers(0, ROWS, (2, BATCH)).astype(np.int32)
    x, grad = np.empty((2, BATCH, WIDTH), np.float32)
    rows.forward(x, None, ids)
    tree.step(grad, x, target)
    rows.backward(None, ids, grad, 1.0)


if __name__ == "__main__":
    main()
