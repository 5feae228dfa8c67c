"""The nodes of a tree that one rank has, of those that share it: paths through them, and their scores.

A rank has whole owners (cpu/logistic_rows.py), so gradients are summed as one process with as many owners sums them.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from cpu import logistic_rows, tree_softmax
from cpu.activation import softplus
from cpu.array import Array
from cpu.compiled import launched
from cpu.tree import Tree
from cpu.tree_softmax import node_score


class Part(NamedTuple):
    """What one rank has of a tree.

    owners  (O,) int64  its owners, rising
    nodes   (N,) int32  its nodes, rising
    place   (V - 1,) int32  the place of each node of the tree among them; -1 of those it does not have
    """

    owners: np.ndarray
    nodes: np.ndarray
    place: np.ndarray


def dealt(tree: Tree, counts: Array, owners: int, ranks: int) -> Array:
    """The rank of each owner, (owners,) int64; counts (V,): how often each class is met.

    Owners have even shares of the visits, but the one that has the rare classes has most nodes. So the largest comes first, and
    goes to the rank whose share of the nodes and of the visits is then the least, whichever of both is larger.
    """
    shares = np.zeros((2, owners))
    _weigh(*shares, tree.owner, tree.leaf_up, tree.node_up, counts if counts.any() else np.ones(counts.size))
    shares /= shares.sum(axis=1, keepdims=True)
    rank_of, held = np.empty(owners, np.int64), np.zeros((2, ranks))
    for owner in np.argsort(-shares.max(axis=0), kind="stable"):
        rank_of[owner] = (held + shares[:, owner, None]).max(axis=0).argmin()
        held[:, rank_of[owner]] += shares[:, owner]
    return rank_of


def part(tree: Tree, rank_of: Array, rank: int) -> Part:
    """What a rank has, where rank_of is the rank of each owner."""
    mine = (rank_of == rank)[tree.owner]
    nodes = np.flatnonzero(mine).astype(np.int32)
    place = np.full(mine.size, -1, np.int32)
    place[nodes] = np.arange(nodes.size, dtype=np.int32)
    return Part(np.flatnonzero(rank_of == rank), nodes, place)


def climb(paths: Array, cuts: Array, tree: Tree, target: Array) -> None:
    """Write the whole paths of targets (B,), leaf first, with -1 at their ends, and where the entries of each owner begin.

    paths (B, depth + 1) int32, cuts (B, O + 1) int32
    """
    tree_softmax.climb(paths, cuts, tree.leaf_up, tree.node_up, tree.owner, target, numba.get_num_threads())


def restrict(entries: Array, cuts: Array, paths: Array, path_cuts: Array, come: Array, part: Part) -> None:
    """Write the part's own entries and cuts of examples `come` (n,), whose whole paths are given; see `Work`."""
    threads = numba.get_num_threads()
    _restrict(entries, cuts, paths, path_cuts, come, part.owners, part.place, threads)


def learn(learned: Any, work: logistic_rows.Work, hidden: Array, weight: Array | None, rate: float) -> None:
    """Take the part's nodes through all examples, whose entries are in `work`; what its o-th owner adds to the gradient of
    example b is then in row o * B + b of work.grads, and to its loss in work.losses[o, b].
    """
    workers = max(2, min(numba.get_num_threads(), len(work.losses)))
    logistic_rows.learn_apart(learned, work, hidden, weight, rate, workers)


def add(grad: Array, loss: Array, cuts: Array, grads: Array, losses: Array) -> None:
    """Write grad (B, D) and loss (B,), summed over the owners of the whole tree in their order, as `learn` leaves them."""
    logistic_rows.add_owners(grad, loss, cuts, grads, losses, numba.get_num_threads())


def scores(out: Array, learned: Any, entries: Array, hidden: Array) -> None:
    """out[b, i] = the score of the part's node at entries[b, i]; past the end of a list nothing is written."""
    _scores(out, learned.rows, learned.biases, entries, hidden, numba.get_num_threads())


def all_scores(out: Array, learned: Any, hidden: Array) -> None:
    """out[b, i] = the score of the part's node i; out (B, N)."""
    _all_scores(out, learned.rows, learned.biases, hidden, numba.get_num_threads())


def log_prob(out: Array, entries: Array, scores: Array) -> None:
    """out[b] = log p of the path at entries[b], leaf first, whose nodes have these scores: as tree_softmax.log_prob has it."""
    _log_prob(out, entries, scores, numba.get_num_threads())


@launched()
def _weigh(nodes, visits, owner, leaf_up, node_up, counts):
    """Add up the nodes and the visits of each owner."""
    for node in range(owner.size):
        nodes[owner[node]] += 1
    for leaf in range(leaf_up.size):
        up = leaf_up[leaf]
        while up >= 0:
            visits[owner[up >> 1]] += counts[leaf]
            up = node_up[up >> 1]


@launched(parallel=True)
def _restrict(entries, cuts, paths, path_cuts, come, owners, place, threads):
    for thread in numba.prange(threads):
        for b in range(thread * come.size // threads, (thread + 1) * come.size // threads):
            count = 0
            for o in range(owners.size):
                cuts[b, o] = count
                for i in range(path_cuts[come[b], owners[o]], path_cuts[come[b], owners[o] + 1]):
                    up = paths[come[b], i]
                    entries[b, count] = 2 * place[up >> 1] + (up & 1)
                    count += 1
            cuts[b, owners.size] = count
            entries[b, count] = -1


@launched(parallel=True)
def _scores(out, nodes, biases, entries, hidden, threads):
    for thread in numba.prange(threads):
        for b in range(thread * hidden.shape[0] // threads, (thread + 1) * hidden.shape[0] // threads):
            i = 0
            while entries[b, i] >= 0:
                out[b, i] = node_score(nodes, biases, entries[b, i] >> 1, hidden, b)
                i += 1


@launched(parallel=True)
def _all_scores(out, nodes, biases, hidden, threads):
    for thread in numba.prange(threads):
        for node in range(thread * nodes.shape[0] // threads, (thread + 1) * nodes.shape[0] // threads):
            for b in range(hidden.shape[0]):
                out[b, node] = node_score(nodes, biases, node, hidden, b)


@launched(parallel=True)
def _log_prob(out, entries, scores, threads):
    for thread in numba.prange(threads):
        for b in range(thread * out.size // threads, (thread + 1) * out.size // threads):
            total, i = 0.0, 0
            while entries[b, i] >= 0:
                score = scores[b, i]
                total -= softplus(-score if entries[b, i] & 1 else score)
                i += 1
            out[b] = total
