"""Probabilistic label trees: the probability of each of V labels, where an example may have any number of them.

Every node of a tree over the labels has a row w. logistic(w . h) is the probability that an example has a label below the node,
given that it has one below the node's parent. The probability of a label is the product of these from the root to its leaf. An
example with labels visits the root and the children of every node that has one of its labels below. An example without labels
visits the root alone. So a step costs only the paths of the example's labels.

Jasinska et al. 2016, "Extreme F-measure maximization using sparse probability estimates"; Wydmuch et al. 2018, "A no-regret
generalization of hierarchical softmax to extreme multi-label classification", arXiv:1810.11671.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cpu.output import scores, topk
from cpu.output.topk import Excluded, drop, heap_push, is_excluded, none_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.tree import logistic_rows
from cpu.tree.logistic_rows import OWNERS, by_owner
from cpu.tree.tree import Tree
from cpu.tree_softmax import node_score
from cpu.vectors.activation import exp, log1p, softplus


class LabelTree(NamedTuple):
    """A label tree of N nodes, numbered breadth first from the root, 0. V of them are leaves, one per label.

    up        (N,) int32      parent of each node; -1 at the root
    child_at  (N + 1,) int32  node n has the children child_at[n] to child_at[n + 1]; a leaf has none
    leaf      (V,) int32      the node of each label
    label     (N,) int32      the label of each leaf; -1 at an inner node
    visits    (V,) int32      the number of nodes that an example of a label visits, without the root
    """

    up: np.ndarray
    child_at: np.ndarray
    leaf: np.ndarray
    label: np.ndarray
    visits: np.ndarray


def from_parents(parents: ArrayLike, leaf: ArrayLike) -> LabelTree:
    """Builds the tree of N nodes of any numbering and arity.

    parents  (N,) parent of each node; -1 at the root, which is unique
    leaf     (V,) the node of each label; exactly these nodes have no children

    Raises ValueError unless the arguments form a tree whose leaves are the labels.
    """
    parents, leaf = np.asarray(parents, np.int32), np.asarray(leaf, np.int32)
    nodes, childless = parents.size, np.setdiff1d(np.arange(parents.size), parents)
    if parents.ndim != 1 or nodes < 2 or parents.max() >= nodes or parents.min() < -1 or (parents < 0).sum() != 1:
        raise ValueError("parents: expected the number of each node's parent, and -1 at one root")
    if leaf.ndim != 1 or not np.array_equal(np.sort(leaf), childless):
        raise ValueError(f"leaf: expected one label at each of the {childless.size} nodes without children")
    order = _breadth_first(parents)
    place = np.empty(parents.size, np.int32)  # old node number -> new node number
    place[order] = np.arange(parents.size)
    up = np.where(parents[order] < 0, -1, place[parents[order]]).astype(np.int32)
    label = np.full(parents.size, -1, np.int32)
    label[place[leaf]] = np.arange(leaf.size)
    # Children are in the order of their parents: those of node n precede those of n + 1 and follow the root.
    child_at = 1 + np.concatenate([[0], np.cumsum(np.bincount(up[1:], minlength=up.size))]).astype(np.int32)
    return LabelTree(up, child_at, place[leaf], label, _visits(up, np.diff(child_at))[place[leaf]])


def binary(tree: Tree) -> LabelTree:
    """Converts a tree over classes (cpu/tree/tree.py) to a label tree: its inner nodes, and one leaf per class."""
    inner = tree.node_up.size
    parents = np.concatenate([tree.node_up >> 1, tree.leaf_up >> 1])  # -1 >> 1 is -1
    return from_parents(parents, np.arange(inner, inner + tree.leaf_up.size))


def longest(tree: Any, target: Array, target_at: Array) -> int:
    """Returns an upper bound on the nodes that an example of a batch visits, exact if each has one label; see `workspace`."""
    ends = np.concatenate([[0], np.cumsum(tree.visits[target], dtype=np.int64)])[target_at]
    return min(1 + int(np.diff(ends).max(initial=0)), tree.up.size)


def workspace(batch: int, width: int, length: int, dtype: DTypeLike) -> logistic_rows.Work:
    """Allocates scratch for calls of `step` with up to `batch` examples that visit up to `length` nodes each."""
    return logistic_rows.workspace(batch, width, length, dtype)


def step(
    grad: Array, loss: Array, learned: Any, work: logistic_rows.Work, tree: Any, hidden: Array, target: Array,
    target_at: Array, weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step: writes grad (B, D) and loss (B,), updates rows (N, D); equals the serial loop bit for bit.

    target (T,) int32 labels, target_at (B + 1,) int64: example b has target[target_at[b] : target_at[b + 1]], in any order. See
    the contract.
    """
    _enter(work.entries, work.cuts, tree.up, tree.child_at, tree.leaf, target, target_at, numba.get_num_threads())
    logistic_rows.learn(grad, loss, learned, work, hidden, weight, rate)


def losses(
    out: Array, learned: Any, work: logistic_rows.Work, tree: Any, hidden: Array, target: Array, target_at: Array
) -> None:
    """Writes to out[b] the unweighted loss of example b in `step`, up to rounding; no update. Arguments as in `step`."""
    threads = numba.get_num_threads()
    _enter(work.entries, work.cuts, tree.up, tree.child_at, tree.leaf, target, target_at, threads)
    _losses(out, learned.rows, learned.biases, work.entries, work.cuts, hidden, threads)


def log_prob(out: Array, learned: Any, tree: Any, hidden: Array, target: Array) -> None:
    """out[b] = log p(example b has label target[b]); target (B,) int32. The labels' probabilities do not sum to 1."""
    _log_prob(out, learned.rows, learned.biases, tree.up, tree.leaf, hidden, target, numba.get_num_threads())


def log_probs(out: Array, learned: Any, tree: Any, hidden: Array) -> None:
    """out[b, v] = log p(example b has label v); out (B, V). Uses B N numbers of scratch."""
    table = np.empty((len(hidden), learned.rows.shape[0]), out.dtype)
    scores.products(table, learned.rows, learned.biases, hidden)
    _descend(out, table, tree.up, tree.label, numba.get_num_threads())


def best(
    ids: Array, log_probs: Array, learned: Any, tree: Any, hidden: Array, least: float = -np.inf,
    without: Excluded | None = None,
) -> None:  # fmt: skip
    """Writes the k most likely labels of each example, most likely first; exact.

    A node is at least as likely as its descendants, so best-first search yields the labels in falling order of probability.
    Ties go to the higher node number, the deeper node.

    ids (B, k) int32, log_probs (B, k); learned rows (N, D), hidden (B, D); k <= V. least: labels of a lower log-probability are
    left out. without: the labels that each example excludes, see cpu/output/topk.py. If fewer than k remain, ids ends with -1
    and log_probs with -inf.
    """
    without = without or none_excluded(len(hidden))
    paths = learned.rows, learned.biases, tree.child_at, tree.label
    _best(ids, log_probs, *paths, hidden, least, *without, numba.get_num_threads())


def _breadth_first(parents: Array) -> Array:
    """Returns the nodes level by level; within a level by the position of the parent, then by number."""
    by_parent = np.argsort(parents, kind="stable")
    begin = np.searchsorted(parents[by_parent], np.arange(parents.size + 1))
    levels = [by_parent[:1]]
    while len(levels[-1]):
        counts = begin[levels[-1] + 1] - begin[levels[-1]]
        first = np.repeat(begin[levels[-1]] - np.cumsum(counts) + counts, counts)
        levels.append(by_parent[first + np.arange(counts.sum())])
    order = np.concatenate(levels)
    if order.size != parents.size:
        raise ValueError(f"parents: found {parents.size - order.size} nodes that hang from no root: a circle")
    return order


def _visits(up: Array, children: Array) -> Array:
    """Returns, for each node, the number of children of the node and its ancestors."""
    visits, above = children.copy(), up.copy()
    while (above >= 0).any():
        visits += np.where(above >= 0, children[above], 0)
        above = np.where(above >= 0, up[above], -1)
    return visits


@launched(parallel=True)
def _enter(entries, cuts, up, child_at, leaf, target, target_at, threads):
    """Writes the nodes that each example visits, sorted by owner, as 2 * node + turn; turn 1: one of its labels is below."""
    batch = target_at.size - 1
    for thread in numba.prange(threads):
        nodes, listed = np.empty(256, np.int32), np.empty(entries.shape[1], np.int32)
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            size, nodes = _positive(nodes, up, leaf, target, target_at[b], target_at[b + 1])
            by_owner(entries, cuts, b, listed, _list(listed, nodes[:size], child_at))


@called()
def _positive(nodes, up, leaf, target, first, last):
    """Returns the number and the ascending array of distinct nodes with a label of target[first:last] below."""
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
    """Lists the root and the children of positive nodes in ascending order; returns their number.

    Children are in the order of their parents, so both ascending lists are merged in one pass.
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
    """Writes the sum of -log p over the entries of each example."""
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
    """Converts the scores of all nodes, in `table`, to the log-probabilities of the labels; path sums are float64."""
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


@launched(parallel=True)
def _best(ids, log_probs, rows, biases, child_at, label, hidden, least, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            size, keys, items = _look(keys, items, 0, 0.0, 0, 1, rows, biases, hidden, b, least)
            count = 0
            while count < ids.shape[1] and size:
                key, node = keys[0], items[0]
                size = drop(keys, items, size)
                if label[node] < 0:
                    first, last = child_at[node], child_at[node + 1]
                    size, keys, items = _look(keys, items, size, key, first, last, rows, biases, hidden, b, least)
                elif not is_excluded(left_out, out_first[b], out_last[b], label[node]):
                    ids[b, count] = label[node]
                    log_probs[b, count] = key
                    count += 1


@called()
def _look(keys, items, size, key, first, last, rows, biases, hidden, b, least):
    """Pushes the nodes of first:last with log-probability of at least `least`, below a node of log-probability `key`."""
    for node in range(first, last):
        log_prob = key - softplus(-node_score(rows, biases, node, hidden, b))
        if log_prob >= least:
            size, keys, items = heap_push(keys, items, size, log_prob, node)
    return size, keys, items
