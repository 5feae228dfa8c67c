"""The task of `tree.step`: classes by Zipf's law, their Huffman tree and its nodes, batches; what a step makes of the first.

By NumPy alone: on a GPU neither the task nor what checks it needs Numba. bench/tree.py has the same for the host's cores.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bench.tree_shape import huffman, path
from hybrid.contract import Learned
from tests.support.visits import learn_together

WIDTH, BATCH, RATE = 128, 1024, 0.02
BATCHES = (
    64  # different targets, more of small ones, so that a batch finds its rows gone from the cache when it comes again
)
TRUNKS = 8  # different hidden vectors: in training a trunk has just written them


class Task:
    """Classes, their tree, its nodes, and batches of hidden vectors and targets.

    empty(shape, dtype)  makes the large arrays
    """

    empty: Callable[..., np.ndarray] = staticmethod(np.empty)

    def __init__(self, classes: int, threads: int, width: int = WIDTH, batch: int = BATCH):
        self.classes, self.threads, self.width, self.batch = classes, threads, width, batch
        self.rng = np.random.default_rng(0)
        share = 1 / np.arange(1, classes + 1)
        self.chance = np.cumsum(share / share.sum())
        self.targets = [self.draw(batch) for _ in range(max(BATCHES, BATCHES * BATCH // batch))]
        self.hidden = self.empty((TRUNKS, batch, width), np.float32)
        self.rng.standard_normal(out=self.hidden, dtype=np.float32)
        self.counts = (1e9 * share).astype(np.int64)
        self.nodes = self.empty((classes - 1, width), np.float32)
        some = self.rng.standard_normal((10_000, width), np.float32) * np.float32(0.05)
        for first in range(0, classes - 1, len(some)):
            self.nodes[first : first + len(some)] = some[: classes - 1 - first]

    @cached_property
    def tree(self) -> Any:
        """What kernels of a GPU take of it."""
        return huffman(self.counts)

    def draw(self, count: int) -> np.ndarray:
        """Targets by Zipf's law."""
        return np.minimum(np.searchsorted(self.chance, self.rng.random(count)), self.classes - 1).astype(np.int32)

    def length(self) -> float:
        """The nodes of a mean path."""
        return float(np.mean([len(path(self.tree, leaf)) for targets in self.targets for leaf in targets]))


def learned(task: Task, together: int, top: int = 0, rate: float = RATE):
    """Ids of the nodes that the first batch meets, those nodes before and after the step, the gradients and the losses.

    top  the first so many nodes learn from the whole batch at once
    """
    lists = [path(task.tree, leaf) for leaf in task.targets[0]]
    met = np.unique([node for steps in lists for node, _ in steps])
    place = {int(node): i for i, node in enumerate(met)}
    first = task.nodes[met].astype(np.float64)
    nodes, hidden = Learned(first.copy()), task.hidden[0].astype(np.float64)

    def part(begin: int, end: int, together: int):
        short = [[(place[node], turn) for node, turn in steps if begin <= node < end] for steps in lists]
        return learn_together(nodes, hidden, short, np.ones(len(hidden)), rate, together)

    parts = part(0, top, task.batch), part(top, task.classes, together)
    return met, first, nodes.rows, *(sum(found) for found in zip(*parts, strict=True))
