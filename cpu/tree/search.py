"""The most likely classes of a hierarchical softmax: exact best-first search.

A prefix, the way from the root to some node, is at least as likely as every leaf below it. Prefixes and leaves lie in a
heap (cpu/output/topk.py) in falling order of (log p, item), where an item is a node, or ~leaf: equally likely leaves come out
by rising class, and after the equally likely prefixes that may hide a leaf of a lower class.
"""

from typing import Any

import numba
import numpy as np

from cpu.output import topk
from cpu.output.topk import Excluded, drop, heap_push, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.runtime.memory import prefetch_row
from cpu.tree_softmax import node_score
from cpu.vectors.activation import ZERO, softplus

SLACK = 1e-5  # of a bound, against rounding


def best(ids: Array, log_probs: Array, learned: Any, tree: Any, hidden: Array, without: Excluded | None = None) -> None:
    """Write the k most likely classes of each row, most likely first, equals by rising class; exact.

    ids (B, k) int32, log_probs (B, k); rows, the nodes (V - 1, D), hidden (B, D); k <= V. Visits exactly the nodes that are at
    least as likely as the k-th class; what is less likely than k leaves that were met is not remembered.
    without: the classes that each row excludes, see cpu/output/topk.py; where fewer than k are left, ids ends with -1 and
    log_probs with -inf.
    """
    without = without or none_excluded(len(hidden))
    _best(ids, log_probs, learned.rows, learned.biases, tree.children, hidden, *without, numba.get_num_threads())


@launched(parallel=True)
def _best(ids, log_probs, nodes, biases, children, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        leaf_keys = np.empty(ids.shape[1])  # of the likeliest leaves that were met, rising
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            for i in range(leaf_keys.size):
                leaf_keys[i] = -np.inf
            size, keys, items = heap_push(keys, items, 0, 0.0, 0)
            found = 0
            while found < ids.shape[1] and size:
                key, item = keys[0], items[0]
                size = drop(keys, items, size)
                if item < 0:
                    ids[b, found] = ~item
                    log_probs[b, found] = key
                    found += 1
                    continue
                score = node_score(nodes, biases, item, hidden, b)
                for side in range(2):
                    away = score if side == 0 else -score
                    if key - max(away, ZERO) < leaf_keys[0] - SLACK:
                        continue  # softplus(x) is at least x, and 0: k leaves are likelier
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
    """Take a key in place of the lowest; keys rise."""
    place = 0
    while place + 1 < keys.size and keys[place + 1] < key:
        keys[place] = keys[place + 1]
        place += 1
    keys[place] = key


@called()
def expand(keys, items, size, key, node, nodes, biases, children, hidden, b):
    """Push both children of a prefix."""
    score = node_score(nodes, biases, node, hidden, b)
    size, keys, items = heap_push(keys, items, size, key - softplus(score), children[node, 0])
    return heap_push(keys, items, size, key - softplus(-score), children[node, 1])
