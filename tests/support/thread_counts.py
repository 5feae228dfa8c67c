"""Steps on 1, 2, 3, 4, 7 and 8 threads, in a process that may have as many; prints how many outcomes in bytes each had."""

import json
from collections.abc import Callable, Iterator

import numba
import numpy as np

from cpu import cluster_softmax, rows, scores, softmax
from cpu.tree import huffman
from hybrid.contract import Learned
from tests.support.tree_batch import run
from tests.support.tree_softmax import case

COUNTS = (1, 2, 3, 4, 7, 8)


def tree_batch(together: int) -> Iterator[np.ndarray]:
    """Nodes that several threads have judged, crowded ones, or none; some threads have no example."""
    tree = huffman(1000 // np.arange(1, 301))
    for examples in (5, 500):
        nodes, hidden, target = case(300, 33, examples)
        grad, loss, learned = run(tree, Learned(nodes), hidden, target, together)
        yield from (grad, loss, learned.rows)


def scatter() -> Iterator[np.ndarray]:
    """Rows that are met often, one by one and in bags."""
    rng = np.random.default_rng(0)
    ids, grad = (rng.geometric(0.05, 700) - 1).astype(np.int32), rng.normal(size=(700, 19)).astype(np.float32)
    one, bags = rng.normal(size=(2, 300, 19)).astype(np.float32)
    rows.scatter(Learned(one), ids, grad, 0.1)
    rows.scatter_mean(Learned(bags), np.arange(0, 701, 7, dtype=np.int32), ids, None, grad[:100], 0.1)
    yield from (one, bags)


def full() -> Iterator[np.ndarray]:
    """A full softmax, its search and its scores; some parts have no class."""
    weights, hidden, target = case(5001, 12, 40)  # 5,000 rows
    work, learned = softmax.workspace(40, 12, np.float32), Learned(weights)
    grad, loss, out = np.empty_like(hidden), np.empty(40, np.float32), np.empty((40, 5000), np.float32)
    softmax.step(grad, loss, learned, work, hidden, target % 5000, None, 0.1)
    scores.softmax(out, learned, hidden)
    yield from (grad, loss, weights, out)


def clusters() -> Iterator[np.ndarray]:
    """Clusters of a head, whose rows move by row-wise Adagrad."""
    rng = np.random.default_rng(0)
    plan = cluster_softmax.plan((np.arange(900) % 31).astype(np.int32))
    weights, hidden = rng.normal(size=(900, 9)).astype(np.float32), rng.normal(size=(200, 9)).astype(np.float32)
    grad, loss = np.empty_like(hidden), np.empty(200, np.float32)
    target, work = rng.integers(0, 900, 200).astype(np.int32), cluster_softmax.workspace(200, 9, plan, np.float32)
    cluster_softmax.step(
        grad, loss, Learned(weights, None, np.zeros(900, np.float32)), work, plan, hidden, target, None, 0.1
    )
    yield from (grad, loss, weights)


STEPS: dict[str, Callable[[], Iterator[np.ndarray]]] = {
    "a tree, one together": lambda: tree_batch(1),
    "a tree, 16 together": lambda: tree_batch(16),
    "a tree, all together": lambda: tree_batch(500),
    "rows": scatter,
    "full softmax": full,
    "clusters": clusters,
}


def outcomes(step: Callable[[], Iterator[np.ndarray]]) -> int:
    """How many different outcomes a step has."""
    found = set()
    for threads in COUNTS:
        numba.set_num_threads(threads)
        found.add(b"".join(array.tobytes() for array in step()))
    return len(found)


if __name__ == "__main__":
    print(json.dumps({name: outcomes(step) for name, step in STEPS.items()}))
