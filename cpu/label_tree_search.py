"""The most likely labels of a probabilistic label tree, by exact best-first search.

A node is at least as likely as everything below it, so nodes taken in falling order of probability bring the labels in that
order; among equals the higher node number, the deeper one, comes first.
"""

from typing import Any

import numba
import numpy as np

from cpu import excluded, topk
from cpu.activation import softplus
from cpu.array import Array
from cpu.compiled import called, launched
from cpu.excluded import Excluded
from cpu.heap import drop, push
from cpu.tree_softmax import node_score


def best(
    ids: Array, log_probs: Array, learned: Any, tree: Any, hidden: Array, least: float = -np.inf,
    without: Excluded | None = None,
) -> None:  # fmt: skip
    """Write the k most likely labels of each example, most likely first; exact.

    ids (B, k) int32, log_probs (B, k); learned rows (N, D), hidden (B, D); k <= V.
    least: labels of a lower log-probability do not come. without: the labels that each example excludes, see
    cpu/excluded.py. Where fewer than k are left, ids ends with -1 and log_probs with -inf.
    """
    without = without or excluded.nothing(len(hidden))
    paths = learned.rows, learned.biases, tree.child_at, tree.label
    _best(ids, log_probs, *paths, hidden, least, *without, numba.get_num_threads())


@launched(parallel=True)
def _best(ids, log_probs, rows, biases, child_at, label, hidden, least, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            size, keys, items = _look(keys, items, 0, 0.0, 0, 1, rows, biases, hidden, b, least)
            found = 0
            while found < ids.shape[1] and size:
                key, node = keys[0], items[0]
                size = drop(keys, items, size)
                if label[node] < 0:
                    first, last = child_at[node], child_at[node + 1]
                    size, keys, items = _look(keys, items, size, key, first, last, rows, biases, hidden, b, least)
                elif not excluded.holds(left_out, out_first[b], out_last[b], label[node]):
                    ids[b, found] = label[node]
                    log_probs[b, found] = key
                    found += 1


@called()
def _look(keys, items, size, key, first, last, rows, biases, hidden, b, least):
    """Push those of the nodes first:last that are likely enough, below a node of log-probability `key`."""
    for node in range(first, last):
        log_prob = key - softplus(-node_score(rows, biases, node, hidden, b))
        if log_prob >= least:
            size, keys, items = push(keys, items, size, log_prob, node)
    return size, keys, items
