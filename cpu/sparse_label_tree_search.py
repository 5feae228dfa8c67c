"""The most likely labels of a sparse label tree, by exact best-first search, and how likely given ones are.

A node is at least as likely as everything below it, so nodes taken in falling order of probability bring the labels in that
order; among equals the higher node number, the deeper one, comes first. Examples are CSR rows whose ids rise.
"""

import numba
import numpy as np

from cpu import topk
from cpu.activation import softplus
from cpu.array import Array
from cpu.compiled import called, launched
from cpu.excluded import seek
from cpu.heap import drop, push
from cpu.label_tree_shape import LabelTree
from cpu.sparse_label_tree import CHUNK, Weights


def best(
    ids: Array, log_probs: Array, tree: LabelTree, weights: Weights, row_at: Array, feature: Array, value: Array,
    least: float = -np.inf,
) -> None:  # fmt: skip
    """Write the k most likely labels of each example, most likely first: ids (B, k) int32, log_probs (B, k) float32.

    row_at (B + 1,), feature int32, value float32: the examples. least: labels of a lower log-probability do not come. Where
    fewer than k are left, ids ends with -1 and log_probs with -inf.
    """
    _best(ids, log_probs, tree.label, *weights, row_at, feature, value, least, numba.get_num_threads())


def given(
    log_probs: Array, tree: LabelTree, weights: Weights, labels: Array, row_at: Array, feature: Array, value: Array
) -> None:
    """log_probs[b, j] = log p(example b has label labels[b, j]); labels (B, k), -inf for a label -1."""
    inner = tree.up, tree.leaf, _chunk_of(weights)
    _given(log_probs, *inner, *weights, labels, row_at, feature, value, numba.get_num_threads())


def _chunk_of(weights: Weights) -> Array:
    """The chunk of each node."""
    return np.repeat(np.arange(weights.node_at.size - 1), np.diff(weights.node_at))


@launched(parallel=True)
def _best(
    out, log_probs, label, node_at, first, biases, feature_at, features, weight_at, node, weight, row_at, ids, values, least,
    threads,
):  # fmt: skip
    for thread in numba.prange(threads):
        keys, items, scores = np.empty(1024), np.empty(1024, np.int32), np.empty(CHUNK)
        for b in range(thread, row_at.size - 1, threads):
            topk.clear(out[b], log_probs[b])
            own, worth = ids[row_at[b] : row_at[b + 1]], values[row_at[b] : row_at[b + 1]]
            size, keys, items = push(keys, items, 0, 0.0, -1)
            found = 0
            while found < out.shape[1] and size:
                key, at = keys[0], items[0]
                size = drop(keys, items, size)
                if at >= 0 and label[at] >= 0:
                    out[b, found], log_probs[b, found] = label[at], key
                    found += 1
                    continue
                begin, end = (first[at], first[at + 1]) if at >= 0 else (0, 1)
                for m in range(begin, end):
                    _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth)
                    for child in range(node_at[m + 1] - node_at[m]):
                        log_prob = key - softplus(-scores[child])
                        if log_prob >= least:
                            size, keys, items = push(keys, items, size, log_prob, node_at[m] + child)


@called()
def _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth):
    """The scores of a chunk's nodes for an example, to scores[:nodes]."""
    for child in range(node_at[m + 1] - node_at[m]):
        scores[child] = biases[node_at[m] + child]
    place, end = feature_at[m], feature_at[m + 1]
    for j in range(own.size):
        place = seek(features, place, end, own[j])
        if place < end and features[place] == own[j]:
            for w in range(weight_at[place], weight_at[place + 1]):
                scores[node[w]] += weight[w] * worth[j]


@launched(parallel=True)
def _given(
    log_probs, up, leaf, chunk, node_at, first, biases, feature_at, features, weight_at, node, weight, labels, row_at, ids,
    values, threads,
):  # fmt: skip
    for thread in numba.prange(threads):
        scores = np.empty(CHUNK)
        for b in range(thread, row_at.size - 1, threads):
            own, worth = ids[row_at[b] : row_at[b + 1]], values[row_at[b] : row_at[b + 1]]
            for j in range(labels.shape[1]):
                total = 0.0 if labels[b, j] >= 0 else -np.inf
                at = leaf[labels[b, j]] if labels[b, j] >= 0 else -1
                while at >= 0:
                    m = chunk[at]
                    _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth)
                    total -= softplus(-scores[at - node_at[m]])
                    at = up[at]
                log_probs[b, j] = total
