"""How evenly a tree's step can be shared by 2 to 64 threads: the largest share that one of them has, counted, not timed.

Targets by Zipf's law on their Huffman tree. A visit is an example at a node of its path: it reads the row for the score and
for the gradient, and moves it: three passes over the row. All threads wait for the last one at the end of each loop of a batch,
so the share is the largest thread's of each loop, summed over loops and batches, of all passes. One over it bounds the speedup.

Where each node has one owner (modes "deterministic" and "ordered"), the root's owner has a visit of every example: no number of
owners gets below the root's share. In mode "batch" (cpu/tree_batch.py) crowded nodes are dealt to threads, and examples are.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench import balance_owners, balance_steps
from bench.measure import append
from cpu.array import Array
from cpu.logistic_rows import OWNERS
from cpu.tree import Tree, huffman, of_pointers
from cpu.tree_crowds import deal, share

COUNTS = True  # and times nothing: it runs beside other work
THREADS = (2, 4, 8, 16, 32, 64)
CLASSES, FEW = (100_000, 10_000_000), (1_000, 5_000)
BATCH, BATCHES, TOGETHER = 1024, 16, 64
PASSES = 3  # of a visit: score, gradient, move


class Balance(NamedTuple):
    """Shares of all passes of a tree's steps, on so many threads; 1 / threads is even.

    path      nodes on a mean path
    root      the root's share: the least that the largest owner has
    few       the largest thread's, of OWNERS owners: as it is by default
    owned     of as many owners as threads
    met       owners on a mean path then
    batch     in mode "batch", `together` examples at once at a node; the least of the largest there is `crowded`, the root's
              score and move by one thread
    whole     and with the whole batch at once, where no node is crowded
    helps     the mode to take: owners, where they can be even; else what has the least share
    """

    classes: int
    path: float
    root: float
    threads: int
    few: float
    owned: float
    met: float
    together: int
    batch: float
    whole: float
    helps: str


def run(arguments: argparse.Namespace) -> None:
    """Print a table for each number of classes, and two of other steps; with --json a line a number of threads."""
    for classes in FEW if arguments.quick else CLASSES:
        found = list(balances(classes, arguments.together or TOGETHER))
        print(table(found), end="\n\n", flush=True)
        append(arguments.json, [{"bench": "balance", **one._asdict()} for one in found])
    others = list(balance_steps.steps(THREADS))
    print(balance_steps.table(others), end="\n\n")
    append(arguments.json, [{"bench": "balance_steps", **one._asdict()} for one in others])
    owned = list(balance_owners.steps(THREADS))
    print(balance_owners.table(owned))
    append(arguments.json, [{"bench": "balance_owners", **one._asdict()} for one in owned])


def balances(classes: int, together: int) -> Iterator[Balance]:
    """What is counted of a number of classes, for each number of threads."""
    counts = 100 * classes // np.arange(1, classes + 1)
    tree, targets = huffman(counts), drawn(counts)
    ways, rank = [paths(tree, target) for target in targets], tree.ranks()
    places = [np.argsort(rank[target], kind="stable") for target in targets]
    visits = sum(int((way >= 0).sum()) for way in ways)
    path, root = visits / (BATCH * BATCHES), BATCH * BATCHES / visits
    for threads in THREADS:
        owner = of_pointers(tree.leaf_up, tree.node_up, counts, threads).owner
        few = sum(by_owner(way, tree.owner * min(threads, OWNERS) // OWNERS) for way in ways) / visits
        owned = sum(by_owner(way, owner) for way in ways) / visits
        met = float(np.mean([owners_met(way, owner) for way in ways]))
        sorted_ways = [way[place] for way, place in zip(ways, places, strict=True)]
        batch, whole = (
            sum(by_batch(way, size, threads) for way in sorted_ways) / (PASSES * visits) for size in (together, BATCH)
        )
        helps = _helps(threads, root, owned, {f'"batch", {together} together': batch, '"batch", all together': whole})
        yield Balance(classes, path, root, threads, few, owned, met, together, batch, whole, helps)


def drawn(counts: Array) -> list[Array]:
    """Batches of targets, each class as often as its count says."""
    ends, rng = np.cumsum(counts), np.random.default_rng(0)
    return [np.searchsorted(ends, rng.integers(0, ends[-1], BATCH), "right") for _ in range(BATCHES)]


def paths(tree: Tree, target: Array) -> Array:
    """The nodes that each example visits, (B, longest), from the leaf up; -1 past the root."""
    nodes, up = [], tree.leaf_up[target]
    while (up >= 0).any():
        nodes.append(np.where(up >= 0, up >> 1, -1))
        up = np.where(up >= 0, tree.node_up[up >> 1], -1)
    return np.column_stack(nodes)


def by_owner(way: Array, owner: Array) -> int:
    """Visits of the owner that has the most, of a batch."""
    return int(np.bincount(owner[way[way >= 0]]).max())


def owners_met(way: Array, owner: Array) -> float:
    """Owners on a mean path: none comes back on the way up."""
    owners = np.where(way >= 0, owner[way].astype(np.int64), -1)
    return 1 + float(((owners[:, 1:] != owners[:, :-1]) & (way[:, 1:] >= 0)).sum()) / len(way)


def by_batch(way: Array, together: int, threads: int) -> int:
    """Passes of the largest thread in mode "batch": in the loop over crowded nodes, that over examples, and the last one, which
    moves the nodes whose examples several threads have judged. way: of examples sorted from left to right in the tree.
    """
    place, level = np.nonzero(way >= 0)
    _, first, of_node, count = np.unique(way[place, level], return_index=True, return_inverse=True, return_counts=True)
    first = place[first]  # of each node, whose examples are neighbours
    crowded = count > together
    lengths, alike = (np.bincount(place[some], minlength=len(way)) for some in (slice(None), crowded[of_node]))
    ends = share(lengths, alike, np.arange(len(way)), threads)
    thread = np.searchsorted(ends[1:], np.arange(len(way)), "right")
    meet = _most(count[crowded], threads)
    judged = np.bincount(thread[place], np.where(crowded[of_node], 1, 2), threads)
    inside = thread[first] == thread[first + count - 1]
    judged += np.bincount(thread[first], count * (inside & ~crowded), threads)
    return int(2 * meet + judged.max() + _most(count[~(inside | crowded)], threads))


def _most(counts: Array, threads: int) -> int:
    """Examples of the thread that has the most, of nodes dealt as the kernels deal them."""
    if not len(counts):
        return 0
    nodes, cuts = deal(np.column_stack([np.zeros_like(counts), np.zeros_like(counts), counts]), threads)
    ends = np.append(0, np.cumsum(nodes[:, 2]))
    return int((ends[cuts[1:]] - ends[cuts[:-1]]).max())


def table(found: list[Balance]) -> str:
    """As Markdown, below what the root bounds."""
    one, percent = found[0], "{:.1%}".format
    chain = -(-BATCH // one.together)
    lines = [
        f"V = {one.classes:,}, {BATCHES} batches of {BATCH:,}. A path has {one.path:.1f} nodes, and the root "
        f"{percent(one.root)} of the visits:",
        f"one owner of it bounds the speedup at {1 / one.root:.1f}. It moves {BATCH:,} times a batch, one by one, in mode",
        f'"batch" {chain} with {one.together} together, and once with all.',
        "",
        f"| threads | even | {OWNERS} owners at most | an owner a thread | owners a path | batch, {one.together} together "
        "| batch, all together | helps |",
        "|" + "---|" * 8,
    ]
    for b in found:
        shares = " | ".join(map(percent, (1 / b.threads, b.few, b.owned)))
        lines.append(f"| {b.threads} | {shares} | {b.met:.1f} | {percent(b.batch)} | {percent(b.whole)} | {b.helps} |")
    return "\n".join(lines)


def _helps(threads: int, root: float, owned: float, modes: dict[str, float]) -> str:
    """See Balance.helps."""
    mode = min(modes, key=modes.__getitem__)
    return "owners" if 1 / threads >= root or modes[mode] >= owned else mode
