"""Hierarchical softmax whose nodes learn from a few examples at once: nodes (V - 1, D). See `TreeBatch` in the contract.

Where a node moves for one example after another, the root is a chain as long as the batch. Here the examples of a node learn
together, in order and up to `together` at a time, from the node before any of them moves it. What depends on what is then:

    crowded nodes   those with more than `together` examples, all near the root: group after group. Each group notes the row
                    that it found
    examples        each along its whole path, independent of all others: scores, losses, gradients
    other nodes     each of them moves once, independent of all others

Examples are sorted by their classes' place in the tree, from left to right. So the examples of any node are neighbours at every
level, and nodes are found without a hash table. Sums have an order that does not depend on the threads.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.activation import ZERO, miss_and_loss
from cpu.array import Array
from cpu.compiled import called, inlined, launched
from cpu.logistic_visit import weighed
from cpu.rule import descend, pace, square_of
from cpu.tree_softmax import node_score


class Plan(NamedTuple):
    """A tree: leaf_up, node_up and depth as in cpu/tree.py; rank (V,) int32: each class's place from left to right."""

    leaf_up: np.ndarray
    node_up: np.ndarray
    depth: int
    rank: np.ndarray


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes; all but `place` in the sorted order of the examples.

    place    (B,) int32       where each example stands in the sorted order
    entries  (L, B) int32     2 * node + turn at each level, the root's first; -1 past the end of a path
    seen     (L, B) int32     which row of `found` the example meets at this level; -1: the node's own
    misses   (L, B)           turn - logistic(score), times the example's weight
    found    (L, S, D)        rows of crowded nodes as their groups found them
    biases   (L, S)           the same of their biases
    pulls    (threads, D)     the gradient of the node that a thread moves
    """

    place: np.ndarray
    entries: np.ndarray
    seen: np.ndarray
    misses: np.ndarray
    found: np.ndarray
    biases: np.ndarray
    pulls: np.ndarray


def plan(tree: Any) -> Plan:
    """The tree as the other functions take it."""
    return Plan(tree.leaf_up, tree.node_up, tree.depth, tree.ranks())


def workspace(batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Work:
    """Scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes."""
    slots = groups(batch, together)
    return Work(
        np.empty(batch, np.int32),
        np.empty((depth, batch), np.int32),
        np.empty((depth, batch), np.int32),
        np.empty((depth, batch), dtype),
        np.empty((depth, slots, width), dtype),
        np.empty((depth, slots), dtype),
        np.empty((numba.config.NUMBA_NUM_THREADS, max(width, 16)), dtype),
    )


def groups(batch: int, together: int) -> int:
    """The most groups of crowded nodes that a level has room for.

    Those of a node that begins at place p stand from 2 (p // together) on: it has more than `together` examples, so that the
    next node begins late enough for its groups to stand behind.
    """
    return 2 * -(-batch // together) if batch > together else 0


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Plan, hidden: Array, target: Array,
    weight: Array | None, rule: Any, together: int,
) -> None:  # fmt: skip
    """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

    Rows, the nodes (V - 1, D), and hidden (B, D) of one floating dtype, target (B,) int32 classes. grad is summed over the
    path, not averaged over B. At each node the examples that pass it learn in their order, up to `together` at a time, from
    the node before any of them moves it, and it moves against the sum of their gradients.
    """
    threads = numba.get_num_threads()
    order = np.argsort(tree.rank[target], kind="stable")
    place, entries, seen, misses = work.place[: len(order)], *(part[:, : len(order)] for part in work[1:4])
    _climb(place, entries, seen, tree.leaf_up, tree.node_up, order, target, threads)
    move = *pace(rule, hidden.dtype), threads
    crowds = _crowds(entries, together)
    if len(crowds):
        crowds = crowds[np.argsort(crowds[:, 1] - crowds[:, 2], kind="stable")]  # the longest first
        _meet(
            *learned, crowds, place, entries, seen, work.found, work.biases, work.pulls, order, hidden, weight, together,
            *move,
        )  # fmt: skip
    rows = learned.rows, learned.biases, work.found, work.biases
    _judge(grad, loss, *rows, entries, seen, misses, order, hidden, weight, threads)
    _move(*learned, entries, seen, misses, work.pulls, order, hidden, *move)


@launched(parallel=True)
def _climb(place, entries, seen, leaf_up, node_up, order, target, threads):
    """The paths of the sorted examples, from the root on."""
    for thread in numba.prange(threads):
        for p in range(thread * order.size // threads, (thread + 1) * order.size // threads):
            place[order[p]] = p
            length, up = 0, leaf_up[target[order[p]]]
            while up >= 0:
                length, up = length + 1, node_up[up >> 1]
            up = leaf_up[target[order[p]]]
            for level in range(length - 1, -1, -1):
                entries[level, p], up = up, node_up[up >> 1]
            entries[length:, p] = -1
            seen[:, p] = -1


@launched()
def _crowds(entries, together):
    """The nodes with more than `together` examples: (nodes, 3) of level, first and last place."""
    found: list[tuple[int, int, int]] = []
    for level in range(entries.shape[0]):
        before, first = len(found), 0
        while first < entries.shape[1]:
            last = _end(entries[level], first)
            if entries[level, first] >= 0 and last - first > together:
                found.append((level, first, last))
            first = last
        if len(found) == before:
            break  # nodes farther from the root have no more examples than those above
    made = np.empty((len(found), 3), np.int64)
    for i in range(len(found)):
        made[i] = found[i]
    return made


@inlined()
def _end(entries, first):
    """Where the examples of the node at this place end."""
    last = first + 1
    while last < entries.size and entries[last] >> 1 == entries[first] >> 1:
        last += 1
    return last


@launched(parallel=True)
def _meet(
    rows, biases, squares, bias_squares, crowds, place, entries, seen, found, found_biases, pulls, order, hidden, weight,
    together, rate, keep, clip, threads,
):  # fmt: skip
    """Crowded nodes meet their examples, group after group, and note what each group finds."""
    for thread in numba.prange(threads):
        for i in range(thread, crowds.shape[0], threads):
            level, begin, end = crowds[i]
            node, members = entries[level, begin] >> 1, np.sort(order[begin:end])
            for first in range(0, members.size, together):
                slot = 2 * (begin // together) + first // together
                found[level, slot] = rows[node]
                if biases is not None:
                    found_biases[level, slot] = biases[node]
                pull = _forget(pulls, thread, hidden)
                for b in members[first : first + together]:
                    p = place[b]
                    seen[level, p] = slot
                    score = node_score(rows, biases, node, hidden, b)
                    miss = weighed(miss_and_loss(score, entries[level, p] & 1)[0], weight, b)
                    pull -= _pull(pulls, thread, hidden, b, miss)
                _visit(rows, biases, squares, bias_squares, node, pulls, thread, pull, rate, keep, clip)


@launched(parallel=True)
def _judge(
    grad, loss, rows, biases, found, found_biases, entries, seen, misses, order, hidden, weight, threads
):  # fmt: skip
    """Every example along its path: its gradient, its loss, and its misses."""
    for thread in numba.prange(threads):
        for p in range(thread * order.size // threads, (thread + 1) * order.size // threads):
            b, total = order[p], ZERO
            grad[b] = 0
            for level in range(entries.shape[0]):
                entry, slot = entries[level, p], seen[level, p]
                if entry < 0:
                    break
                if slot < 0:
                    cost = _learn(grad, rows, biases, entry >> 1, misses, level, p, entry & 1, hidden, weight, b)
                else:
                    own = None if biases is None else found_biases[level]
                    cost = _learn(grad, found[level], own, slot, misses, level, p, entry & 1, hidden, weight, b)
                total += cost
            loss[b] = weighed(total, weight, b)


@launched(parallel=True)
def _move(
    rows, biases, squares, bias_squares, entries, seen, misses, pulls, order, hidden, rate, keep, clip, threads
):  # fmt: skip
    """Every node without a crowd moves against the sum over its examples; who has the first of them does it."""
    for thread in numba.prange(threads):
        begin, end = thread * order.size // threads, (thread + 1) * order.size // threads
        for level in range(entries.shape[0]):
            for p in range(begin, end):
                entry = entries[level, p]
                first = p == 0 or entries[level, p - 1] >> 1 != entry >> 1
                if entry >= 0 and first and seen[level, p] < 0:
                    pull = _forget(pulls, thread, hidden)
                    for q in range(p, _end(entries[level], p)):
                        pull -= _pull(pulls, thread, hidden, order[q], misses[level, q])
                    _visit(rows, biases, squares, bias_squares, entry >> 1, pulls, thread, pull, rate, keep, clip)


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def _learn(grad, table, biases, row, misses, level, p, turn, hidden, weight, b):
    """Example b at a row: its miss is noted, its gradient added; returns its loss."""
    miss, cost = miss_and_loss(node_score(table, biases, row, hidden, b), turn)
    miss = weighed(miss, weight, b)
    misses[level, p] = miss
    for d in range(grad.shape[1]):
        grad[b, d] -= miss * table[row, d]
    return cost


@inlined()
def _forget(pulls, thread, hidden):
    """The gradient of a node begins at 0; returns that of its bias."""
    for d in range(hidden.shape[1]):
        pulls[thread, d] = 0
    return hidden.dtype.type(0)


@inlined(fastmath={"contract"})
def _pull(pulls, thread, hidden, b, miss):
    """Add what example b makes of the gradient of a node; returns its miss."""
    for d in range(hidden.shape[1]):
        pulls[thread, d] -= miss * hidden[b, d]
    return miss


@called()
def _visit(rows, biases, squares, bias_squares, node, pulls, thread, pull, rate, keep, clip):
    """A node moves against its gradient, pulls[thread], and its bias against `pull`."""
    square = square_of(pulls[:, : rows.shape[1]], thread, pull, biases, squares, clip)
    one = pulls.dtype.type(1)
    descend(
        rows, biases, squares, bias_squares, node, pulls, thread, pull, square, one, rate, keep, clip, None, 0
    )  # fmt: skip
