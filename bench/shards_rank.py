"""One rank of bench/shards.py: `python -m bench.shards_rank FILE GIGABYTES LIMIT`, started by a launcher."""

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bench.shards import GIGA
from hybrid.ranks.group import Group
from hybrid.sharded.embedding import ShardedEmbedding
from hybrid.sharded.routes import even
from hybrid.sharded.tree import ShardedTree

WIDTH, CLASSES, BATCH, TICKS = 256, 100_000, 1024, 5


def main() -> None:
    """Train within the limit; rank 0 writes what all had to the file."""
    file, gigabytes, limit = sys.argv[1], float(sys.argv[2]), int(float(sys.argv[3]) * GIGA)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    numba.set_num_threads(1)
    group = Group()
    found = trained(group, int(gigabytes * GIGA / (4 * WIDTH)), CLASSES)
    if group.rank == 0:
        Path(file).write_text(json.dumps(found | {"limit": limit}))


def trained(group: Group, rows: int, classes: int) -> dict[str, Any]:
    """What ranks held and had at most, and the losses of the ticks."""
    table = ShardedEmbedding(group, rows, WIDTH, rate=0.1)
    tree = ShardedTree(group, 100 * classes // np.arange(1, classes + 1), WIDTH, batch=BATCH, rate=0.02)
    losses = [tick(group, table, tree) for _ in range(TICKS)]
    held = np.array([table.table.nbytes, tree.nodes.nbytes, peak("VmPeak"), peak("VmHWM")])
    ranks = np.zeros((group.size, held.size), np.int64)
    ranks[group.rank] = held
    group.most(ranks)
    sizes = {
        "rows": rows,
        "width": WIDTH,
        "classes": classes,
        "table": 4 * rows * WIDTH,
        "ticks": TICKS,
        "batch": BATCH,
    }
    return sizes | {"losses": losses, "ranks": ranks.tolist()}


def tick(group: Group, table: ShardedEmbedding, tree: ShardedTree) -> float:
    """Learn from a batch, always the same, of which every rank has a share, and return the mean loss."""
    rng, example_at = np.random.default_rng(0), even(BATCH, group.size)
    ids, target = (_drawn(rng, many) for many in (table.rows, tree.classes))
    x, grad = np.empty((2, example_at[group.rank + 1] - example_at[group.rank], WIDTH), np.float32)
    table.forward(x, None, ids, example_at=example_at)
    loss = tree.step(grad, x, target, example_at=example_at)
    table.backward(None, ids, grad, 1.0, example_at=example_at)
    return loss


def _drawn(rng: np.random.Generator, many: int) -> np.ndarray:
    """Numbers below `many`, about as words come: of all orders of magnitude equally often."""
    found: np.ndarray = np.minimum(many ** rng.random(BATCH) - 1, many - 1).astype(np.int32)
    return found


def peak(name: str) -> int:
    """Bytes that this process has or had at most, as the system says: VmSize, VmPeak, VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
