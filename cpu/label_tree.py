"""Probabilistic label trees: how likely each of V labels is, where an example may have any number of them.

Every node of a tree over the labels has a row w and says how likely an example has a label below the node, given that it
has one below the node's parent: logistic(w . h). The product of these from the root to a leaf is the probability of a label.
An example with labels visits the root and the children of every node that has one of its labels below; an example without
visits the root alone. So a step costs the labels' paths, and no label far from them.

Jasinska et al. 2016, "Extreme F-measure maximization using sparse probability estimates"; Wydmuch et al. 2018, "A no-regret
generalization of hierarchical softmax to extreme multi-label classification", arXiv:1810.11671.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import logistic_rows, scores
from cpu.activation import exp, log1p, softplus
from cpu.array import Array
from cpu.compiled import called, launched
from cpu.logistic_rows import OWNERS, by_owner
from cpu.tree_softmax import node_score


def longest(tree: Any, target: Array, target_at: Array) -> int:
    """At least as many nodes as an example of a batch visits, exact where each has one label: see `workspace`."""
    ends = np.concatenate([[0], np.cumsum(tree.visits[target], dtype=np.int64)])[target_at]
    return min(1 + int(np.diff(ends).max(initial=0)), tree.up.size)


def workspace(batch: int, width: int, length: int, dtype: DTypeLike) -> logistic_rows.Work:
    """Scratch for calls of `step` with up to `batch` examples that visit up to `length` nodes each."""
    return logistic_rows.workspace(batch, width, length, dtype)


def step(
    grad: Array, loss: Array, learned: Any, work: logistic_rows.Work, tree: Any, hidden: Array, target: Array,
    target_at: Array, weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move rows (N, D).

    target (T,) int32 labels, target_at (B + 1,) int64: example b has target[target_at[b] : target_at[b + 1]], in any order; one
    that stands there twice counts once. loss is the sum of -log p over the nodes visited. As the serial loop
    over examples does it, bit for bit.
    """
    _enter(work.entries, work.cuts, tree.up, tree.child_at, tree.leaf, target, target_at, numba.get_num_threads())
    logistic_rows.learn(grad, loss, learned, work, hidden, weight, rate)


def losses(
    out: Array, learned: Any, work: logistic_rows.Work, tree: Any, hidden: Array, target: Array, target_at: Array
) -> None:
    """out[b] = the loss of example b in `step`, up to rounding, without a weight; nothing moves. Arguments as in `step`."""
    threads = numba.get_num_threads()
    _enter(work.entries, work.cuts, tree.up, tree.child_at, tree.leaf, target, target_at, threads)
    _losses(out, learned.rows, learned.biases, work.entries, work.cuts, hidden, threads)


def log_prob(out: Array, learned: Any, tree: Any, hidden: Array, target: Array) -> None:
    """out[b] = log p(example b has label target[b]); target (B,) int32. The labels' probabilities do not sum to 1."""
    _log_prob(out, learned.rows, learned.biases, tree.up, tree.leaf, hidden, target, numba.get_num_threads())


def log_probs(out: Array, learned: Any, tree: Any, hidden: Array) -> None:
    """out[b, v] = log p(example b has label v); out (B, V). Takes B N numbers of scratch."""
    table = np.empty((len(hidden), learned.rows.shape[0]), out.dtype)
    scores.products(table, learned.rows, learned.biases, hidden)
    _descend(out, table, tree.up, tree.label, numba.get_num_threads())


@launched(parallel=True)
def _enter(entries, cuts, up, child_at, leaf, target, target_at, threads):
    """Write the nodes that each example visits, sorted by owner: 2 * node + 1 where a label of its own is below."""
    batch = target_at.size - 1
    for thread in numba.prange(threads):
        nodes, listed = np.empty(256, np.int32), np.empty(entries.shape[1], np.int32)
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            size, nodes = _positive(nodes, up, leaf, target, target_at[b], target_at[b + 1])
            by_owner(entries, cuts, b, listed, _list(listed, nodes[:size], child_at))


@called()
def _positive(nodes, up, leaf, target, first, last):
    """The nodes with a label of target[first:last] below, rising, each once; returns how many, and the array."""
    size = 0
    for i in range(first, last):
        node = leaf[target[i]]
        while node >= 0:
            if size == nodes.size:
                nodes = np.append(nodes, nodes)
            nodes[size] = node
            size += 1
            node = up[node]
    nodes[:size].sort()
    kept = min(size, 1)
    for i in range(1, size):
        if nodes[i] != nodes[i - 1]:
            nodes[kept] = nodes[i]
            kept += 1
    return kept, nodes


@called()
def _list(listed, positive, child_at):
    """List the root and the children of positive nodes, rising; returns how many they are.

    Children come in the order of their parents, so both lists rise and are gone through side by side.
    """
    listed[0] = 1 if positive.size else 0
    n = met = 1  # nodes listed, and positive ones passed; the first is the root
    for i in range(positive.size):
        for child in range(child_at[positive[i]], child_at[positive[i] + 1]):
            turn = met < positive.size and positive[met] == child
            met += turn
            listed[n] = 2 * child + turn
            n += 1
    return n


@launched(parallel=True)
def _losses(out, rows, biases, entries, cuts, hidden, threads):
    """The sum of -log p over the entries of each example."""
    batch = hidden.shape[0]
    for thread in numba.prange(threads):
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            total = 0.0
            for i in range(cuts[b, OWNERS]):
                score = node_score(rows, biases, entries[b, i] >> 1, hidden, b)
                total += softplus(-score if entries[b, i] & 1 else score)
            out[b] = total


@launched(parallel=True)
def _log_prob(out, rows, biases, up, leaf, hidden, target, threads):
    for thread in numba.prange(threads):
        for b in range(thread * target.size // threads, (thread + 1) * target.size // threads):
            total = 0.0
            node = leaf[target[b]]
            while node >= 0:
                total -= softplus(-node_score(rows, biases, node, hidden, b))
                node = up[node]
            out[b] = total


@launched(parallel=True, error_model="numpy")
def _descend(out, table, up, label, threads):
    """From the scores of all nodes, in `table`, to the log-probabilities of the labels. The sum along a path is float64."""
    for thread in numba.prange(threads):
        way = np.empty(up.size)
        for b in range(thread * out.shape[0] // threads, (thread + 1) * out.shape[0] // threads):
            for node in range(up.size):
                score = table[b, node]
                tail = log1p(exp(-abs(score)))
                before = way[up[node]] if node else 0.0
                way[node] = before - (max(-np.float64(score), 0.0) + tail)  # minus softplus(-score)
                if label[node] >= 0:
                    out[b, label[node]] = way[node]
