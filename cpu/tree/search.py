"""The most likely classes of a hierarchical softmax: exact best-first search.

A prefix, the path from the root to some node, is at least as likely as every leaf below it. A heap (cpu/output/topk.py) holds
prefixes and leaves in falling order of (log p, item), where an item is a node, or ~leaf. So equally likely leaves come out by
ascending class, after equally likely prefixes that may contain a leaf of a lower class. The search visits exactly the nodes
that are at least as likely as the k-th class. Items less likely than k leaves seen so far are dropped.
"""

from typing import Any

import numba
import numpy as np

from cpu.output import topk
from cpu.output.topk import Excluded, drop, heap_push, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.runtime.memory import prefetch_row
from cpu.tree.tree import Forest
from cpu.tree_softmax import node_score
from cpu.vectors.activation import ZERO, softplus

SLACK = 1e-5  # slack of a bound for rounding errors


def best(ids: Array, log_probs: Array, learned: Any, tree: Any, hidden: Array, without: Excluded | None = None) -> None:
    """Writes the k most likely classes of each row, most likely first, ties by ascending class; exact.

    ids (B, k) int32, log_probs (B, k); rows, the nodes (V - 1, D), hidden (B, D); k <= V. without: the classes that each row
    excludes, see cpu/output/topk.py; if fewer than k remain, ids ends with -1 and log_probs with -inf.
    """
    forest, certain = Forest(tree, np.zeros(1, np.int32)), np.zeros((len(hidden), 1), log_probs.dtype)
    without = without or none_excluded(len(hidden))
    best_in_forest(ids, log_probs, learned, forest, certain, np.empty(0, np.int32), hidden, without)


def best_in_forest(
    ids: Array,
    log_probs: Array,
    learned: Any,
    forest: Forest,
    slots: Array,
    alone: Array,
    hidden: Array,
    without: Excluded,
) -> None:
    """Does the same for trees in the clusters of a head.

    slots  (B, H + K) the log-probability of each slot of the head: H of classes alone, then one per cluster
    alone  (H,) int32, the classes with a slot of their own, ascending
    """
    nodes = learned.rows, learned.biases, forest.tree.children, forest.roots
    _best(ids, log_probs, *nodes, slots, alone, hidden, *without, numba.get_num_threads())


@launched(parallel=True)
def _best(ids, log_probs, nodes, biases, children, roots, slots, alone, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        leaf_keys = np.empty(ids.shape[1])  # keys of the likeliest leaves seen, ascending
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            topk.offer(ids[b], log_probs[b], slots[b], alone, left_out, out_first[b], out_last[b])
            size = 0
            for k in range(roots.size):
                if slots[b, alone.size + k] >= log_probs[b, 0]:
                    if roots[k] >= 0 or not is_excluded(left_out, out_first[b], out_last[b], ~roots[k]):
                        size, keys, items = heap_push(keys, items, size, slots[b, alone.size + k], roots[k])
            for i in range(leaf_keys.size):
                leaf_keys[i] = -np.inf
            for i in range(leaf_keys.size):
                if ids[b, i] >= 0:
                    size, keys, items = heap_push(keys, items, size, log_probs[b, i], ~ids[b, i])
                    _rise(leaf_keys, log_probs[b, i])
            topk.clear(ids[b], log_probs[b])
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
