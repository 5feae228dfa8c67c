"""Hierarchical softmax with mini-batches per node: nodes (V - 1, D). See `TreeBatch` in the contract.

With one update per example the root is a serial chain as long as the batch. Here the examples of a node learn in order in
groups of up to `together`, all of which read the node before the group's update. This leaves these dependencies:

    crowded nodes   nodes with more than `together` examples, all near the root: group after group, each on the row that the
                    previous group left. A group's row is copied for the gradients of its examples
    examples        each along its whole path, independent of all others: scores, losses, gradients
    other nodes     each is updated once, independent of all others

Examples are sorted by their classes' position in the tree, from left to right. So the examples of any node are contiguous. The
number of nodes shared with the previous example delimits a node's examples. The order of sums does not depend on the threads.

A crowded node has a list of examples, as an example has a list of nodes. So its scores and its update use
cpu/tree/logistic_visit.py with rows and hidden vectors swapped.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.output.rule import by_row, descend, goes, square_of
from cpu.runtime.compiled import Array, called, inlined, launched
from cpu.runtime.memory import empty, prefetch_row, zeros
from cpu.tree.logistic_visit import WIDE, compare, cost, forget, judge, move, pull, score, weighed
from cpu.tree_softmax import TOGETHER, climb_together
from cpu.vectors.simd import LANES, load_row, store_row

LINE = 32  # padding in int32 numbers, so that two threads do not write one cache line


class Plan(NamedTuple):
    """A tree: leaf_up, node_up and depth as in cpu/tree/tree.py; rank (V,) int32: each class's position from left to right."""

    leaf_up: np.ndarray
    node_up: np.ndarray
    depth: int
    rank: np.ndarray


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes, of which an example's path has `length`.

    entries  (B, L + WIDE) int32  2 * node + turn, the leaf's first; -1 past the end. Once a crowded node has visited its
                                  examples: 2 * row of `copies` + turn
    lengths  (B,) int32           of paths
    shared   (B + 1,) int32       by place in the sorted order: the number of nodes, from the root, that the example shares with
                                  the previous one; then 0
    crowded  (B,) int32           the number of crowded nodes, from the root
    misses   (B, L)               turn - logistic(score), times the example's weight
    costs    (B, L)               -log p(turn), of crowded nodes only
    copies   (L * S, D)           rows of crowded nodes as their groups read them, `groups` of a level
    lines    (L, B) int32         the examples of each crowded node in batch order
    begun    (threads, L) int32   the place of the first example of a level's current node; -1: before those of the thread
    members  (threads, ...) int32 the examples of the node that a thread updates: 2 * b + turn
    missed   (threads, ...)       the errors of a thread's current example or node
    spent    (threads, ...)       the costs of the same
    pulls    (threads, D)         the gradient of the node that a thread updates
    moves    (threads, ...)       the update factors of an example's rows, where these are not its errors
    """

    entries: np.ndarray
    lengths: np.ndarray
    shared: np.ndarray
    crowded: np.ndarray
    misses: np.ndarray
    costs: np.ndarray
    copies: np.ndarray
    lines: np.ndarray
    begun: np.ndarray
    members: np.ndarray
    missed: np.ndarray
    spent: np.ndarray
    pulls: np.ndarray
    moves: np.ndarray


def plan(tree: Any) -> Plan:
    """Returns the tree in the form that the other functions take."""
    return Plan(tree.leaf_up, tree.node_up, tree.depth, tree.ranks())


def workspace(batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes."""
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
    """Takes one training step: writes grad (B, D) and loss (B,), updates the nodes. See the contract."""
    threads = numba.get_num_threads()
    order = np.argsort(tree.rank[target], kind="stable")
    paths = work.entries, work.lengths, work.shared, work.crowded
    _climb(*paths[:2], tree.leaf_up, tree.node_up, target, threads)
    _compare(*paths, order, threads)
    noted, own = (work.misses, work.costs, work.copies), (work.members, work.missed, work.spent, work.pulls)
    pacing = hidden, hidden.dtype.type(rate), threads
    crowded = crowds(*paths[1:], order, together)
    if len(crowded):
        line_up(work.lines, crowded, order)
        slots = groups(len(order), together)
        meet(*learned, *deal(crowded, threads), *paths[:2], *noted, work.lines, *own, slots, together, weight, *pacing)
    moves = work.moves if by_row(learned) else None
    ends = share(work.lengths, work.crowded, order, threads)
    _judge(grad, loss, *learned, *paths, work.begun, *noted, *own, moves, order, ends, weight, *pacing)
    rest = crossing(work.begun, *paths[2:], order, ends)
    if len(rest):
        _move_rest(*learned, *deal(rest, threads), *paths[:2], work.misses, *own, order, *pacing)


@launched(parallel=True)
def _climb(entries, lengths, leaf_up, node_up, target, threads):
    """Writes the paths of all examples."""
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
    """Writes the number of nodes that each example shares with its predecessor in the sorted order."""
    for thread in numba.prange(threads):
        for p in range(thread * order.size // threads, (thread + 1) * order.size // threads):
            b, before, count = order[p], order[p - 1], 0
            i, j = lengths[b] - 1, lengths[before] - 1
            while p > 0 and i >= 0 and j >= 0 and entries[b, i] >> 1 == entries[before, j] >> 1:
                i, j, count = i - 1, j - 1, count + 1
            shared[p], crowded[b] = count, 0
    shared[order.size] = 0


def groups(batch: int, together: int) -> int:
    """Returns the maximum number of groups of crowded nodes per level.

    A node that begins at place p uses the slots from 2 (p // together) on. It has more than `together` examples, so the next
    node begins late enough for its groups to follow.
    """
    return 2 * -(-batch // together) if batch > together else 0


@launched()
def crowds(lengths, shared, crowded, order, together):
    """Returns the nodes with more than `together` examples: (nodes, 3) of level, first and last place."""
    nodes: list[tuple[int, int, int]] = []
    level, before, places = 0, -1, order.size
    while len(nodes) > before:  # nodes farther from the root have no more examples than those above
        before, first = len(nodes), 0
        while first < places:
            last = last_of(shared, level, first, places)
            if last - first > together and lengths[order[first]] > level:
                nodes.append((level, first, last))
                for p in range(first, last):
                    crowded[order[p]] = level + 1
            first = last
        level += 1
    return _made(nodes)


@inlined()
def last_of(shared, level, first, places):
    """Returns the end of the examples that share the first one's node at this level; a shorter path is alone."""
    last = first + 1
    while last < places and shared[last] > level:
        last += 1
    return last


@launched(parallel=True)
def line_up(lines, crowds, order):
    """Writes the examples of each crowded node in batch order to lines[level, first:last]."""
    for level in numba.prange(crowds[-1, 0] + 1):
        at = np.full(order.size, -1, np.int32)  # the first place of each example's node
        for c in range(crowds.shape[0]):
            if crowds[c, 0] == level:
                for p in range(crowds[c, 1], crowds[c, 2]):
                    at[order[p]] = crowds[c, 1]
        there = np.zeros(order.size, np.int32)  # examples already in the line that begins here
        for b in range(order.size):
            if at[b] >= 0:
                lines[level, at[b] + there[at[b]]] = b
                there[at[b]] += 1


@launched(parallel=True)
def meet(
    rows, biases, squares, bias_squares, crowds, cuts, entries, lengths, misses, costs, copies, lines, members, missed, spent,
    pulls, slots, together, weight, hidden, rate, threads,
):  # fmt: skip
    """Lets crowded nodes learn group after group, and copies the row that each group reads.
    Thread t has the nodes crowds[cuts[t] : cuts[t + 1]]."""
    for thread in numba.prange(threads):
        own_missed, own_spent = missed[thread], spent[thread]
        for c in range(cuts[thread], cuts[thread + 1]):
            level, begin, end = crowds[c]
            one = lines[level, begin]
            node = entries[one, lengths[one] - 1 - level] >> 1
            for first in range(begin, end, together):
                count = min(together, end - first)
                slot = level * slots + 2 * (begin // together) + (first - begin) // together
                for d in range(0, rows.shape[1], LANES):
                    width = min(LANES, rows.shape[1] - d)
                    store_row(copies, slot, d, load_row(rows, node, d, width), width)
                for k in range(count):
                    b = lines[level, first + k]
                    at = lengths[b] - 1 - level
                    turn = entries[b, at] & 1
                    members[thread, k], entries[b, at] = 2 * b + turn, 2 * slot + turn
                _score(own_missed, own_spent, rows, biases, node, hidden, members, thread, count)
                for k in range(count):
                    b = lines[level, first + k]
                    at = lengths[b] - 1 - level
                    own_missed[k] = weighed(own_missed[k], weight, b)
                    misses[b, at], costs[b, at] = own_missed[k], own_spent[k]
                visit_node(
                    rows, biases, squares, bias_squares, node, hidden, members, own_missed, pulls, thread, count, rate,
                )  # fmt: skip


@inlined()
def _score(misses, costs, rows, biases, node, hidden, members, thread, count):
    """Writes misses[:count] and costs[:count] of a thread's members at a node."""
    thread, node, last = np.uintp(thread), np.uintp(node), np.uintp(count)
    for i in range(np.uintp(0), last, WIDE):
        score(misses, i, hidden, rows, node, members, thread, i, last)
        if biases is not None:
            for k in range(i, min(i + np.uintp(WIDE), last)):
                misses[k] += biases[node]
        compare(misses, costs, members, thread, i)


@launched()
def share(lengths, crowded, order, threads):
    """Returns the start of each thread's examples and the end of the last, (threads + 1,), balanced by node visits.

    An example reads a crowded node once, for its gradient, and another node three times: score, gradient and update.
    """
    every = reached = 0
    for b in order:
        every += 3 * lengths[b] - 2 * crowded[b]
    ends, thread = np.full(threads + 1, order.size), 1
    ends[0] = 0
    for p in range(order.size):
        visits = 3 * lengths[order[p]] - 2 * crowded[order[p]]
        while (
            thread < threads and (2 * reached + visits) * threads > 2 * thread * every
        ):  # the visit's midpoint lies in the next thread's share
            ends[thread] = p
            thread += 1
        reached += visits
    return ends


@launched(parallel=True)
def _judge(
    grad, loss, rows, biases, squares, bias_squares, entries, lengths, shared, crowded, begun, misses, costs, copies, members,
    missed, spent, pulls, moves, order, ends, weight, hidden, rate, threads,
):  # fmt: skip
    """Computes the gradient and loss of every example along its path; the last example of a node triggers the node's update.

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
            pull(grad, b, copies, own_missed, entries, b, own, length)
            for level in range(max(before, crowded[b]), after):
                begun[thread, level] = p
            for level in range(max(after, crowded[b]), before):
                if begun[thread, level] >= 0:
                    _move_node(
                        rows, biases, squares, bias_squares, entries, lengths, level, begun[thread, level], p + 1, misses,
                        members, missed, pulls, thread, order, hidden, rate,
                    )  # fmt: skip


@launched()
def crossing(begun, shared, crowded, order, ends):
    """Returns the uncrowded nodes whose examples several threads processed: (nodes, 3) of level, first and last place.

    ends  from `share`
    """
    nodes: list[Any] = []
    for thread in range(ends.size - 1):
        last = end = ends[thread + 1]
        for level in range(shared[end] - 1, crowded[order[end - 1]] - 1, -1):  # nodes nearer to the root end later
            if begun[thread, level] >= 0:
                while shared[last] > level:  # 0 behind the last place
                    last += 1
                nodes.append((level, np.int64(begun[thread, level]), last))
    return _made(nodes)


@called()
def _made(nodes):
    made = np.empty((len(nodes), 3), np.int64)
    for i in range(len(nodes)):
        made[i] = nodes[i]
    return made


def deal(nodes: Array, threads: int) -> tuple[Array, Array]:
    """Deals nodes (n, 3), of level, first and last place, to threads by their numbers of examples.

    Returns the reordered nodes, and the start of each thread's nodes in them (threads + 1,). The nodes with the most examples
    are dealt first, each to the least loaded thread.
    """
    longest = nodes[np.argsort(nodes[:, 1] - nodes[:, 2], kind="stable")]
    thread = _least(longest, threads)
    return longest[np.argsort(thread, kind="stable")], np.searchsorted(np.sort(thread), np.arange(threads + 1))


@launched()
def _least(nodes, threads):
    """Returns the thread of each node."""
    spent, thread = np.zeros(threads, np.int64), np.empty(nodes.shape[0], np.int64)
    for i in range(nodes.shape[0]):
        thread[i] = np.argmin(spent)
        spent[thread[i]] += nodes[i, 2] - nodes[i, 1]
    return thread


@launched(parallel=True)
def _move_rest(
    rows, biases, squares, bias_squares, nodes, cuts, entries, lengths, misses, members, missed, spent, pulls, order, hidden,
    rate, threads,
):  # fmt: skip
    """Updates the nodes whose examples several threads processed; nodes[cuts[t] : cuts[t + 1]] are thread t's."""
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
    """Updates the node that examples first:last of the sorted order share at this level."""
    for p in range(first, last):
        b = order[p]
        members[thread, p - first], missed[thread, p - first] = 2 * b, misses[b, lengths[b] - 1 - level]
    node = entries[order[first], lengths[order[first]] - 1 - level] >> 1
    visit_node(
        rows, biases, squares, bias_squares, node, hidden, members, missed[thread], pulls, thread, last - first, rate,
    )  # fmt: skip


@inlined()
def visit_node(rows, biases, squares, bias_squares, node, hidden, members, misses, pulls, thread, count, rate):
    """Updates a node once, with the gradient summed over a thread's members."""
    forget(pulls, thread)
    pull(pulls, thread, hidden, misses, members, thread, 0, count)
    bias_pull = hidden.dtype.type(0)
    for k in range(count):
        bias_pull -= misses[k]
    square = square_of(pulls, thread, bias_pull, biases, squares)
    one = hidden.dtype.type(1)
    descend(rows, biases, squares, bias_squares, node, pulls, thread, bias_pull, square, one, rate)


@inlined()
def _ask(rows, biases, squares, bias_squares, entries, lengths, order, p, known):
    """Prefetches an example's rows and their optimiser state, except those shared with the previous example."""
    if p < order.size:
        b = order[p]
        for i in range(lengths[b] - known):
            prefetch_row(rows, entries[b, i] >> 1)
            prefetch_row(biases, entries[b, i] >> 1)
            prefetch_row(squares, entries[b, i] >> 1)
            prefetch_row(bias_squares, entries[b, i] >> 1)
