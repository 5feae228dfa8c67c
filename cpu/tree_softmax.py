"""Hierarchical softmax: nodes (V - 1, D), one logistic regression at each inner node of a binary tree over V classes.

Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model".
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.output import topk
from cpu.output.topk import Excluded, drop, heap_push, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, inlined, launched
from cpu.runtime.memory import prefetch_row
from cpu.tree import logistic_rows
from cpu.tree.logistic_rows import OWNERS
from cpu.vectors.activation import ZERO, softplus

TOGETHER = 64  # examples that climb in lockstep
SLACK = 1e-5  # slack of a bound for rounding errors
FIELD = 63 // (OWNERS - 1)  # bits per counter: paths are shorter than 2^21


def plan(tree: Any) -> Any:
    """Returns the tree unchanged."""
    return tree


def workspace(batch: int, width: int, depth: int, dtype: DTypeLike) -> logistic_rows.Work:
    """Allocates scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes."""
    return logistic_rows.workspace(batch, width, depth, dtype)


def step(
    grad: Array, loss: Array, learned: Any, work: logistic_rows.Work, tree: Any, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """See the contract and cpu/tree/logistic_rows.py. Cache-line-aligned arrays (cpu/runtime/memory.py) are fastest."""
    climb(work.entries, work.cuts, tree.leaf_up, tree.node_up, tree.owner, target, numba.get_num_threads())
    logistic_rows.learn(grad, loss, learned, work, hidden, weight, rate)


def log_prob(out: Array, learned: Any, tree: Any, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b]), in nats; its exp sums to 1 over all classes."""
    _log_prob(out, learned.rows, learned.biases, tree.leaf_up, tree.node_up, hidden, target, numba.get_num_threads())


@launched(parallel=True)
def climb(entries, cuts, leaf_up, node_up, owner, target, threads):
    """Writes each target's path, leaf first, and the start of each owner's entries."""
    for thread in numba.prange(threads):
        end, at = (thread + 1) * target.size // threads, np.empty(TOGETHER, np.int32)
        for first in range(thread * target.size // threads, end, TOGETHER):
            last = min(first + TOGETHER, end)
            climb_together(entries, leaf_up, node_up, target, at, first, last)
            for b in range(first, last):
                _cut(cuts, entries, b, owner)


@inlined()
def climb_together(entries, leaf_up, node_up, target, at, first, last):
    """Writes the paths of examples first:last, at most TOGETHER, leaf first, with -1 at their ends; at (TOGETHER,): scratch.

    A climb is a chain of dependent loads, so the examples climb in lockstep to overlap the latencies. No step has a branch,
    since the end of a path is unpredictable; an example past the root stays there with -1.
    """
    for b in range(first, last):
        at[b - first] = leaf_up[target[b]]
    level, climbing = 0, node_up.size > 0
    while climbing:
        done = np.int32(-1)
        for b in range(first, last):
            up = at[b - first]
            entries[b, level] = up
            above = node_up[np.uintp(max(up, 0)) >> np.uintp(1)]
            above = above if up >= 0 else np.int32(-1)
            at[b - first] = above
            done &= above
        level, climbing = level + 1, done >= 0
    for b in range(first, last):
        entries[b, level] = -1


@inlined()
def _cut(cuts, entries, b, owner):
    """Writes the start of each owner's entries on the path of example b, whose owners ascend.

    One register holds all counters, FIELD bits for each but the last.
    """
    counted, length, up = np.int64(0), 0, entries[b, 0]
    while up >= 0:
        counted += np.int64(1) << np.int64(FIELD * owner[np.uintp(up) >> np.uintp(1)])
        length += 1
        up = entries[b, length]
    begin = np.int64(0)
    for s in range(OWNERS):
        cuts[b, s] = begin
        begin += (counted >> np.int64(FIELD * s)) & np.int64((1 << FIELD) - 1)
    cuts[b, OWNERS] = length


@launched()
def climb_runs(entries, cuts, leaf_up, node_up, owner, target):
    """Writes the same for the first example of each run of one target; the run's others get its first entry."""
    heads, count = np.empty(TOGETHER, np.int64), 0
    for b in range(target.size):
        entries[b, 0] = leaf_up[target[b]]
        if b == 0 or target[b] != target[b - 1]:
            heads[count] = b
            count += 1
        if count == TOGETHER or b == target.size - 1:
            _climb_from(entries, cuts, node_up, owner, heads, count)
            count = 0


@called()
def _climb_from(entries, cuts, node_up, owner, heads, count):
    """Writes the paths of `count` examples, from their first entries on."""
    for i in range(count):
        for s in range(OWNERS + 1):
            cuts[heads[i], s] = 0
    level, climbing = 0, count > 0
    while climbing:
        climbing = False
        for i in range(count):
            b = heads[i]
            up = entries[b, level]
            if up >= 0:
                climbing = True
                cuts[b, owner[up >> 1] + 1] += 1
                up = node_up[up >> 1]
            entries[b, level + 1] = up
        level += 1
    for i in range(count):
        for s in range(1, OWNERS + 1):
            cuts[heads[i], s] += cuts[heads[i], s - 1]


@launched(parallel=True)
def _log_prob(out, nodes, biases, leaf_up, node_up, hidden, target, threads):
    for thread in numba.prange(threads):
        for b in range(thread * target.size // threads, (thread + 1) * target.size // threads):
            total = 0.0
            up = leaf_up[target[b]]
            while up >= 0:
                score = node_score(nodes, biases, up >> 1, hidden, b)
                total -= softplus(-score if up & 1 else score)
                up = node_up[up >> 1]
            out[b] = total


@inlined(fastmath={"reassoc", "contract"})
def node_score(nodes, biases, node, hidden, b):
    """Returns w . h plus the node's bias, if any: the log-odds of turning right at the node."""
    score = ZERO
    for d in range(hidden.shape[1]):
        score += nodes[node, d] * hidden[b, d]
    if biases is None:
        return score
    return score + biases[node]


# A prefix, the path from the root to some node, is at least as likely as every leaf below it. A heap (cpu/output/topk.py) holds
# prefixes and leaves in falling order of (log p, item), where an item is a node, or ~leaf. So equally likely leaves come out by
# ascending class, after equally likely prefixes that may contain a leaf of a lower class. The search visits exactly the nodes
# that are at least as likely as the k-th class. Items less likely than k leaves seen so far are dropped.


def best(ids: Array, log_probs: Array, learned: Any, tree: Any, hidden: Array, without: Excluded | None = None) -> None:
    """Writes the k most likely classes of each row, most likely first, ties by ascending class: an exact best-first search.

    ids (B, k) int32, log_probs (B, k); rows, the nodes (V - 1, D), hidden (B, D); k <= V. without: the classes that each row
    excludes, see cpu/output/topk.py; if fewer than k remain, ids ends with -1 and log_probs with -inf.
    """
    nodes = learned.rows, learned.biases, tree.children
    _best(ids, log_probs, *nodes, hidden, *(without or none_excluded(len(hidden))), numba.get_num_threads())


@launched(parallel=True)
def _best(ids, log_probs, nodes, biases, children, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        leaf_keys = np.empty(ids.shape[1])  # keys of the likeliest leaves seen, ascending
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            for i in range(leaf_keys.size):
                leaf_keys[i] = -np.inf
            keys[0], items[0], size = 0.0, 0, 1
            count = 0
            while count < ids.shape[1] and size:
                key, item = keys[0], items[0]
                size = drop(keys, items, size)
                if item < 0:
                    ids[b, count] = ~item
                    log_probs[b, count] = key
                    count += 1
                    continue
                score = node_score(nodes, biases, item, hidden, b)
                for side in range(2):
                    away = score if side == 0 else -score
                    if key - max(away, ZERO) < leaf_keys[0] - SLACK:
                        continue  # softplus(x) >= max(x, 0): k leaves are likelier
                    below, child = key - softplus(away), children[item, side]
                    if below < leaf_keys[0]:
                        continue
                    if child >= 0:
                        prefetch_row(nodes, child)
                    elif is_excluded(left_out, out_first[b], out_last[b], ~child):
                        continue
                    else:
                        _rise(leaf_keys, below)
                    size, keys, items = heap_push(keys, items, size, below, child)


@called()
def _rise(keys, key):
    """Replaces the lowest of the ascending keys by a key."""
    place = 0
    while place + 1 < keys.size and keys[place + 1] < key:
        keys[place] = keys[place + 1]
        place += 1
    keys[place] = key
