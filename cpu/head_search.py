"""The most likely classes of a head with trees in its tails: exact best-first search, as in cpu/tree_search.py.

The search begins with the classes that have a slot of the head alone and with the roots of all clusters, each as likely as its
slot; of the former only the k best, and no cluster that is less likely than all of these.
"""

from typing import Any

import numba
import numpy as np

from cpu import excluded, topk
from cpu.array import Array
from cpu.cluster_trees import Forest
from cpu.compiled import called, launched
from cpu.excluded import Excluded
from cpu.heap import drop, push
from cpu.tree_search import expand


def best(
    ids: Array,
    log_probs: Array,
    learned: Any,
    forest: Forest,
    slots: Array,
    alone: Array,
    hidden: Array,
    without: Excluded,
) -> None:
    """Write the k most likely classes of each row, most likely first, equals by rising class; exact.

    ids (B, k) int32, log_probs (B, k)
    learned  of the forest's nodes
    slots    (B, H + K) the log-probability of each slot of the head: H of classes alone, then one a cluster
    alone    (H,) int32, the classes that have a slot alone, rising
    without  the classes that each row excludes; where fewer than k are left, ids ends with -1 and log_probs with -inf
    """
    nodes = learned.rows, learned.biases, forest.tree.children, forest.roots
    _best(ids, log_probs, *nodes, slots, alone, hidden, *without, numba.get_num_threads())


@launched(parallel=True)
def _best(ids, log_probs, nodes, biases, children, roots, slots, alone, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            offer(ids[b], log_probs[b], slots[b], alone, left_out, out_first[b], out_last[b])
            size = 0
            for k in range(roots.size):
                if slots[b, alone.size + k] >= log_probs[b, 0]:
                    size, keys, items = push(keys, items, size, slots[b, alone.size + k], roots[k])
            for i in range(ids.shape[1]):
                if ids[b, i] >= 0:
                    size, keys, items = push(keys, items, size, log_probs[b, i], ~ids[b, i])
            topk.clear(ids[b], log_probs[b])
            found = 0
            while found < ids.shape[1] and size:
                key, item = keys[0], items[0]
                size = drop(keys, items, size)
                if item >= 0:
                    size, keys, items = expand(keys, items, size, key, item, nodes, biases, children, hidden, b)
                elif not excluded.holds(left_out, out_first[b], out_last[b], ~item):
                    ids[b, found] = ~item
                    log_probs[b, found] = key
                    found += 1


@called()
def offer(ids, scores, slots, alone, left_out, first, last):
    """Push the classes that have a slot alone and are not left out into a heap of the k best, see cpu/topk.py."""
    for slot in range(alone.size):
        if not slots[slot] < scores[0] and not excluded.holds(left_out, first, last, alone[slot]):
            topk.push(ids, scores, alone[slot], slots[slot])
