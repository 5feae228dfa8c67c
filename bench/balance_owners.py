"""How evenly owners of rows share the steps that learn example by example, beside a tree's: counted as the kernels list them.

A visit is an example at one of its rows. Owners are dealt to threads in runs, and all threads wait for the last one: so the
share is that of the thread with the most visits of a batch. One over it bounds the speedup.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bench.balance_steps import BATCH, BATCHES, CLASSES, drawn
from cpu import cluster_trees, label_tree, negative, tree_softmax
from cpu.array import Array
from cpu.label_tree_shape import binary
from cpu.logistic_rows import OWNERS, Work
from cpu.tree import huffman

NEGATIVES, HEAD, CLUSTERS = 5, 1000, 300
DEEP = 64  # nodes of the longest list


class Owned(NamedTuple):
    """The largest thread's share of the visits of each step, with OWNERS owners, and with as many as threads but no fewer.

    negatives, negatives_owned  negative sampling, of the target and NEGATIVES classes an example
    labels, labels_owned        a label tree, of an example's path and of what lies beside it
    heads, heads_owned          the trees in the clusters of a head
    """

    threads: int
    negatives: float
    negatives_owned: float
    labels: float
    labels_owned: float
    heads: float
    heads_owned: float


def steps(thread_counts: tuple[int, ...]) -> Iterator[Owned]:
    """What is counted, for each number of threads."""
    targets = [batch.astype(np.int32) for batch in drawn()]
    kinds = _negatives, _labels, _heads
    few = [kind(targets, OWNERS) for kind in kinds]
    for threads in thread_counts:
        many = [kind(targets, max(threads, OWNERS)) for kind in kinds]
        shares = [largest(visits, threads) for pair in zip(few, many, strict=True) for visits in pair]
        yield Owned(threads, *shares)


def largest(visits: Array, threads: int) -> float:
    """The share of the thread that has the most, summed over batches; visits (batches, owners)."""
    owners = visits.shape[1]
    workers = min(threads, owners)
    begins = np.arange(workers) * owners // workers
    return float(np.add.reduceat(visits, begins, axis=1).max(axis=1).sum() / visits.sum())


def _negatives(targets: list[Array], owners: int) -> Array:
    work = negative.workspace(BATCH, 1, NEGATIVES, np.float32, owners)
    alias, found = negative.alias(_counts()), np.empty((BATCH, NEGATIVES), np.int32)

    def enter(target: Array, tick: int) -> None:
        negative.draw(found, alias, 0, tick)
        negative._enter(work.entries, work.cuts, target, found, 1)

    return _visits(work, targets, enter)


def _labels(targets: list[Array], owners: int) -> Array:
    tree = binary(huffman(_counts()))
    work = label_tree.workspace(BATCH, 1, 2 * DEEP, np.float32, owners)
    at = np.arange(BATCH + 1)

    def enter(target: Array, tick: int) -> None:
        label_tree._enter(work.entries, work.cuts, tree.up, tree.child_at, tree.leaf, target, at, 1)

    return _visits(work, targets, enter)


def _heads(targets: list[Array], owners: int) -> Array:
    cluster = np.maximum(-1, (np.arange(CLASSES) - HEAD) * CLUSTERS // (CLASSES - HEAD)).astype(np.int32)
    tree = cluster_trees.huffman(cluster, _counts(), owners).tree
    work = tree_softmax.workspace(BATCH, 1, tree.depth, np.float32, owners)

    def enter(target: Array, tick: int) -> None:
        tree_softmax.climb(work.entries, work.cuts, tree.leaf_up, tree.node_up, tree.owner, target, 1)

    return _visits(work, targets, enter)


def _visits(work: Work, targets: list[Array], enter: Callable[[Array, int], None]) -> Array:
    """How many each owner has of each batch."""
    found = []
    for tick, target in enumerate(targets):
        enter(target, tick)
        found.append(np.diff(work.cuts.astype(np.int64), axis=1).sum(axis=0))
    return np.array(found)


def _counts() -> Array:
    """How often each class is met, by Zipf's law."""
    return 100 * CLASSES // np.arange(1, CLASSES + 1)


def table(found: list[Owned]) -> str:
    """As Markdown."""
    named = (
        f"{step}{of}" for step in ("negatives", "label tree", "trees of a head") for of in ("", ", an owner a thread")
    )
    lines = [
        f"Rows with {OWNERS} owners, or one a thread: {BATCHES} batches of {BATCH:,} of {CLASSES:,} classes by Zipf's law;",
        f"{NEGATIVES} negatives an example; a Huffman tree of labels; a head of {HEAD:,} classes and {CLUSTERS} clusters.",
        "",
        f"| threads | even | {' | '.join(named)} |",
        "|" + "---|" * 8,
    ]
    for one in found:
        lines.append(f"| {one.threads} | {1 / one.threads:.1%} | {' | '.join(map('{:.1%}'.format, one[1:]))} |")
    return "\n".join(lines)
