"""Crowded nodes of a batch: those with more examples than learn together, all near the root. See cpu/tree_batch.py.

A crowded node meets its examples group after group, each from the row that the group before it has left; what a group found
is kept for the gradients of its examples. Its examples are a list, as the nodes are of an example: the scores, and the sum
that the node moves along, are those of cpu/logistic_visit.py with rows and hidden vectors in each other's place.
"""

from typing import Any

import numba
import numpy as np

from cpu.array import Array
from cpu.compiled import called, inlined, launched
from cpu.logistic_visit import WIDE, compare, forget, pull, score, weighed
from cpu.rule import descend, square_of
from cpu.simd import LANES, load_row, store_row


def groups(batch: int, together: int) -> int:
    """The most groups of crowded nodes that a level has room for.

    Those of a node that begins at place p stand from 2 (p // together) on: it has more than `together` examples, so that the
    next node begins late enough for its groups to stand behind.
    """
    return 2 * -(-batch // together) if batch > together else 0


@launched()
def crowds(lengths, shared, crowded, order, together):
    """The nodes with more than `together` examples: (nodes, 3) of level, first and last place."""
    found: list[tuple[int, int, int]] = []
    level, before, places = 0, -1, order.size
    while len(found) > before:  # nodes farther from the root have no more examples than those above
        before, first = len(found), 0
        while first < places:
            last = last_of(shared, level, first, places)
            if last - first > together and lengths[order[first]] > level:
                found.append((level, first, last))
                for p in range(first, last):
                    crowded[order[p]] = level + 1
            first = last
        level += 1
    return _made(found)


@launched()
def crossing(begun, shared, crowded, order, ends):
    """The nodes, but crowded ones, whose examples several threads have judged: (nodes, 3) of level, first and last place.

    ends  as `share` has made them
    """
    found: list[Any] = []
    for thread in range(ends.size - 1):
        last = end = ends[thread + 1]
        for level in range(shared[end] - 1, crowded[order[end - 1]] - 1, -1):  # nearer to the root nodes end later
            if begun[thread, level] >= 0:
                while shared[last] > level:  # 0 behind the last place
                    last += 1
                found.append((level, np.int64(begun[thread, level]), last))
    return _made(found)


@called()
def _made(found):
    made = np.empty((len(found), 3), np.int64)
    for i in range(len(found)):
        made[i] = found[i]
    return made


@launched()
def share(lengths, crowded, order, threads):
    """Where each thread's examples begin, and where the last ends, (threads + 1,): each has about as many visits of nodes.

    An example reads a crowded node once, for its gradient, another one for its score, its gradient and its part of the move.
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
        ):  # its middle is the next one's
            ends[thread] = p
            thread += 1
        reached += visits
    return ends


def deal(nodes: Array, threads: int) -> tuple[Array, Array]:
    """Nodes (n, 3), of level, first and last place, dealt to threads by their examples.

    Returns the nodes in another order, and where those of each thread begin in it (threads + 1,). The node with the most
    examples comes first, and each goes to the thread with the fewest.
    """
    longest = nodes[np.argsort(nodes[:, 1] - nodes[:, 2], kind="stable")]
    thread = _least(longest, threads)
    return longest[np.argsort(thread, kind="stable")], np.searchsorted(np.sort(thread), np.arange(threads + 1))


@launched()
def _least(nodes, threads):
    """The thread of each node."""
    spent, thread = np.zeros(threads, np.int64), np.empty(nodes.shape[0], np.int64)
    for i in range(nodes.shape[0]):
        thread[i] = np.argmin(spent)
        spent[thread[i]] += nodes[i, 2] - nodes[i, 1]
    return thread


@inlined()
def last_of(shared, level, first, places):
    """Where the examples end whose node at this level is that of the first; a path that is shorter is alone."""
    last = first + 1
    while last < places and shared[last] > level:
        last += 1
    return last


@launched(parallel=True)
def line_up(lines, crowds, order):
    """The examples of each crowded node in their own order, at lines[level, first:last]."""
    for level in numba.prange(crowds[-1, 0] + 1):
        at = np.full(order.size, -1, np.int32)  # where the examples of each example's node begin
        for c in range(crowds.shape[0]):
            if crowds[c, 0] == level:
                for p in range(crowds[c, 1], crowds[c, 2]):
                    at[order[p]] = crowds[c, 1]
        there = np.zeros(order.size, np.int32)  # of those that begin here so many stand in line
        for b in range(order.size):
            if at[b] >= 0:
                lines[level, at[b] + there[at[b]]] = b
                there[at[b]] += 1


@launched(parallel=True)
def meet(
    rows, biases, squares, bias_squares, crowds, cuts, entries, lengths, misses, costs, found, lines, members, missed, spent,
    pulls, slots, together, weight, hidden, rate, threads,
):  # fmt: skip
    """Crowded nodes meet their examples, group after group, and note what each group finds. Those of thread t are
    crowds[cuts[t] : cuts[t + 1]].
    """
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
                    store_row(found, slot, d, load_row(rows, node, d, width), width)
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
    """Write misses[:count] and costs[:count] of a thread's members at a node."""
    thread, node, last = np.uintp(thread), np.uintp(node), np.uintp(count)
    for i in range(np.uintp(0), last, WIDE):
        score(misses, i, hidden, rows, node, members, thread, i, last)
        if biases is not None:
            for k in range(i, min(i + np.uintp(WIDE), last)):
                misses[k] += biases[node]
        compare(misses, costs, members, thread, i)


@inlined()
def visit_node(rows, biases, squares, bias_squares, node, hidden, members, misses, pulls, thread, count, rate):
    """A node moves once, against the sum over a thread's members."""
    forget(pulls, thread)
    pull(pulls, thread, hidden, misses, members, thread, 0, count)
    bias_pull = hidden.dtype.type(0)
    for k in range(count):
        bias_pull -= misses[k]
    square = square_of(pulls, thread, bias_pull, biases, squares)
    one = hidden.dtype.type(1)
    descend(rows, biases, squares, bias_squares, node, pulls, thread, bias_pull, square, one, rate)
