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
    """Learn from a batch, always the same, of which every rank has a share, and return the mean loss of all examples."""
    rng = np.random.default_rng(0)
    ids, target = (_drawn(rng, many) for many in (table.rows, tree.classes))
    own = slice(*even(BATCH, group.size)[group.rank : group.rank + 2])
    x, grad = np.empty((2, len(target[own]), WIDTH), np.float32)
    table.forward(x, None, ids)
    parts = [np.zeros(1) for _ in range(group.size)]
    parts[group.rank][:] = len(x) * tree.step(grad, x, target)
    table.backward(None, ids, grad, 1.0)
    group.gather_all(parts)
    return float(sum(part[0] for part in parts) / BATCH)


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
