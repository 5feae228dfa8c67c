"""Hierarchical softmax whose nodes learn from a few examples at once: nodes (V - 1, D). See `TreeBatch` in the contract.

Where a node moves for one example after another, the root is a chain as long as the batch. Here the examples of a node learn
together, in order and up to `together` at a time, from the node before any of them moves it. What depends on what is then:

    crowded nodes   those with more than `together` examples, all near the root: group after group. Each group notes the row
                    that it found
    examples        each along its whole path, independent of all others: scores, losses, gradients
    other nodes     each of them moves once, independent of all others

Examples are sorted by their classes' place in the tree, from left to right. So the examples of any node are neighbours: how
many nodes each shares with the one before says where a node's examples begin and end. Sums have an order that does not
depend on the threads.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.aligned import empty, zeros
from cpu.array import Array
from cpu.compiled import called, inlined, launched
from cpu.logistic_visit import WIDE, cost, judge, move, pull, weighed
from cpu.prefetch import prefetch_row
from cpu.rule import by_row, goes
from cpu.tree_crowds import crossing, crowds, deal, groups, line_up, meet, share, visit_node
from cpu.tree_softmax import TOGETHER, climb_together

LINE = 32  # int32 numbers that keep what two threads write apart


class Plan(NamedTuple):
    """A tree: leaf_up, node_up and depth as in cpu/tree.py; rank (V,) int32: each class's place from left to right."""

    leaf_up: np.ndarray
    node_up: np.ndarray
    depth: int
    rank: np.ndarray


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes; `length` nodes of them on the path of one.

    entries  (B, L + WIDE) int32  2 * node + turn, the leaf's first; -1 past the end. Of a crowded node, once it has met its
                                  examples: 2 * row of `found` + turn
    lengths  (B,) int32           of paths
    shared   (B + 1,) int32       by place in the sorted order: how many nodes, from the root, the example and the one before it
                                  have in common; then 0
    crowded  (B,) int32           how many nodes, from the root, are crowded
    misses   (B, L)               turn - logistic(score), times the example's weight
    costs    (B, L)               -log p(turn), of crowded nodes only
    found    (L * S, D)           rows of crowded nodes as their groups found them, `groups` of a level
    lines    (L, B) int32         the examples of each crowded node in their own order
    begun    (threads, L) int32   the place of the first example of the current node of a level; -1: before those of the thread
    members  (threads, ...) int32 the examples of the node that a thread moves: 2 * b + turn
    missed   (threads, ...)       misses of the example or of the node that a thread is at
    spent    (threads, ...)       and its costs
    pulls    (threads, D)         the gradient of the node that a thread moves
    moves    (threads, ...)       how far each of an example's rows goes, where that is not its miss
    """

    entries: np.ndarray
    lengths: np.ndarray
    shared: np.ndarray
    crowded: np.ndarray
    misses: np.ndarray
    costs: np.ndarray
    found: np.ndarray
    lines: np.ndarray
    begun: np.ndarray
    members: np.ndarray
    missed: np.ndarray
    spent: np.ndarray
    pulls: np.ndarray
    moves: np.ndarray


def plan(tree: Any) -> Plan:
    """The tree as the other functions take it."""
    return Plan(tree.leaf_up, tree.node_up, tree.depth, tree.ranks())


def workspace(batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Work:
    """Scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes."""
    threads, members = numba.config.NUMBA_NUM_THREADS, min(batch, together)
    missed, spent, moves = zeros((3, threads, max(members, depth) + WIDE + LINE), dtype)
    return Work(
        empty((batch, depth + WIDE), np.int32),
        empty((batch,), np.int32),
        empty((batch + 1,), np.int32),
        empty((batch,), np.int32),
        empty((batch, depth), dtype),
        empty((batch, depth), dtype),
        empty((depth * groups(batch, together), width), dtype),
        empty((depth, batch), np.int32),
        empty((threads, depth + LINE), np.int32),
        zeros((threads, members + WIDE + LINE), np.int32),
        missed,
        spent,
        empty((threads, width), dtype),
        moves,
    )


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Plan, hidden: Array, target: Array,
    weight: Array | None, rate: float, together: int,
) -> None:  # fmt: skip
    """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

    Rows, the nodes (V - 1, D), and hidden (B, D) of one floating dtype, target (B,) int32 classes. grad is summed over the
    path, not averaged over B. At each node the examples that pass it learn in their order, up to `together` at a time, from
    the node before any of them moves it, and it moves against the sum of their gradients.
    """
    threads = numba.get_num_threads()
    order = np.argsort(tree.rank[target], kind="stable")
    paths = work.entries, work.lengths, work.shared, work.crowded
    _climb(*paths[:2], tree.leaf_up, tree.node_up, target, threads)
    _compare(*paths, order, threads)
    noted, own = (work.misses, work.costs, work.found), (work.members, work.missed, work.spent, work.pulls)
    pacing = hidden, hidden.dtype.type(rate), threads
    found = crowds(*paths[1:], order, together)
    if len(found):
        line_up(work.lines, found, order)
        slots = groups(len(order), together)
        meet(*learned, *deal(found, threads), *paths[:2], *noted, work.lines, *own, slots, together, weight, *pacing)
    moves = work.moves if by_row(learned) else None
    ends = share(work.lengths, work.crowded, order, threads)
    _judge(grad, loss, *learned, *paths, work.begun, *noted, *own, moves, order, ends, weight, *pacing)
    rest = crossing(work.begun, *paths[2:], order, ends)
    if len(rest):
        _move_rest(*learned, *deal(rest, threads), *paths[:2], work.misses, *own, order, *pacing)


@launched(parallel=True)
def _climb(entries, lengths, leaf_up, node_up, target, threads):
    """The paths of all examples."""
    for thread in numba.prange(threads):
        end, at = (thread + 1) * target.size // threads, np.empty(TOGETHER, np.int32)
        for first in range(thread * target.size // threads, end, TOGETHER):
            last = min(first + TOGETHER, end)
            climb_together(entries, leaf_up, node_up, target, at, first, last)
            for b in range(first, last):
                length = 0
                while entries[b, length] >= 0:
                    length += 1
                lengths[b] = length


@launched(parallel=True)
def _compare(entries, lengths, shared, crowded, order, threads):
    """How many nodes each example has in common with the one before it in the sorted order."""
    for thread in numba.prange(threads):
        for p in range(thread * order.size // threads, (thread + 1) * order.size // threads):
            b, before, count = order[p], order[p - 1], 0
            i, j = lengths[b] - 1, lengths[before] - 1
            while p > 0 and i >= 0 and j >= 0 and entries[b, i] >> 1 == entries[before, j] >> 1:
                i, j, count = i - 1, j - 1, count + 1
            shared[p], crowded[b] = count, 0
    shared[order.size] = 0


@launched(parallel=True)
def _judge(
    grad, loss, rows, biases, squares, bias_squares, entries, lengths, shared, crowded, begun, misses, costs, found, members,
    missed, spent, pulls, moves, order, ends, weight, hidden, rate, threads,
):  # fmt: skip
    """Every example along its path: its gradient and its loss. A node moves when the last of its examples has met it.

    The examples at places ends[t] to ends[t + 1] of the sorted order are thread t's.
    """
    for thread in numba.prange(threads):
        own_missed, own_spent, steps = missed[thread], spent[thread], goes(moves, missed, thread)
        begun[thread] = -1
        for p in range(ends[thread], ends[thread + 1]):
            b, before, after = order[p], shared[p], shared[p + 1]
            _ask(rows, biases, squares, bias_squares, entries, lengths, order, p + 1, after)
            length, own = lengths[b], lengths[b] - crowded[b]
            alone = min(length - max(before, after), own)  # nodes of no other example
            judge(own_missed, own_spent, rows, biases, hidden, b, entries, 0, own, weight)
            total = cost(spent, thread, 0, own)
            for i in range(alone, own):
                misses[b, i] = own_missed[i]
            for i in range(own, length):
                own_missed[i] = misses[b, i]
                total += costs[b, i]
            loss[b] = weighed(total, weight, b)
            move(
                grad, b, True, rows, biases, squares, bias_squares, own_missed, moves, steps, hidden, b, entries, 0, alone,
                rate,
            )  # fmt: skip
            pull(grad, b, rows, own_missed, entries, b, alone, own)
            pull(grad, b, found, own_missed, entries, b, own, length)
            for level in range(max(before, crowded[b]), after):
                begun[thread, level] = p
            for level in range(max(after, crowded[b]), before):
                if begun[thread, level] >= 0:
                    _move_node(
                        rows, biases, squares, bias_squares, entries, lengths, level, begun[thread, level], p + 1, misses,
                        members, missed, pulls, thread, order, hidden, rate,
                    )  # fmt: skip


@launched(parallel=True)
def _move_rest(
    rows, biases, squares, bias_squares, nodes, cuts, entries, lengths, misses, members, missed, spent, pulls, order, hidden,
    rate, threads,
):  # fmt: skip
    """The nodes whose examples more than one thread has judged; nodes[cuts[t] : cuts[t + 1]] are thread t's."""
    for thread in numba.prange(threads):
        for n in range(cuts[thread], cuts[thread + 1]):
            level, first, last = nodes[n]
            _move_node(
                rows, biases, squares, bias_squares, entries, lengths, level, first, last, misses, members, missed, pulls,
                thread, order, hidden, rate,
            )  # fmt: skip


@called()
def _move_node(
    rows, biases, squares, bias_squares, entries, lengths, level, first, last, misses, members, missed, pulls, thread, order,
    hidden, rate,
):  # fmt: skip
    """The node moves that examples first:last of the sorted order have at this level."""
    for p in range(first, last):
        b = order[p]
        members[thread, p - first], missed[thread, p - first] = 2 * b, misses[b, lengths[b] - 1 - level]
    node = entries[order[first], lengths[order[first]] - 1 - level] >> 1
    visit_node(
        rows, biases, squares, bias_squares, node, hidden, members, missed[thread], pulls, thread, last - first, rate,
    )  # fmt: skip


@inlined()
def _ask(rows, biases, squares, bias_squares, entries, lengths, order, p, known):
    """Ask for the rows of an example, but those that the one before has too, and what is kept for them."""
    if p < order.size:
        b = order[p]
        for i in range(lengths[b] - known):
            prefetch_row(rows, entries[b, i] >> 1)
            prefetch_row(biases, entries[b, i] >> 1)
            prefetch_row(squares, entries[b, i] >> 1)
            prefetch_row(bias_squares, entries[b, i] >> 1)
