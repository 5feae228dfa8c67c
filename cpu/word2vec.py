"""word2vec's own loop: rows of an input table are the hidden vectors, and move before the next example reads them.

    h = table[id], or the mean of table[ids] over a bag;  learn from h at a list of rows;  table[each id] -= rate * gradient

So no example waits for the end of a batch, as where cpu/rows.py gathers before a readout's step and scatters after it.
Neighbouring examples of one target, as the context words around a centre word are, learn together from one list of rows
(cpu/groups.py), and their input rows are read before any of them moves. One thread goes through all examples, since each reads
what the one before wrote.

Mikolov et al. 2013, arXiv:1310.4546; Ji et al. 2016, arXiv:1604.04661.
"""

from typing import Any, NamedTuple

import numpy as np

from cpu.array import Array
from cpu.compiled import inlined, launched
from cpu.groups import ask, run_end, visit
from cpu.logistic_rows import OWNERS, Work
from cpu.logistic_visit import cost, judge, move, weighed
from cpu.negative import Alias, enter_runs
from cpu.prefetch import prefetch_row
from cpu.rows import move_row
from cpu.rule import ZERO, by_row, goes, square_of
from cpu.simd import LANES, load_row, multiply, multiply_add, splat, store_row
from cpu.tree_softmax import climb_runs

AHEAD = 8  # examples between asking for an input row and reading it


class Inputs(NamedTuple):
    """What the examples read.

    learned  Learned of the table (R, D); without biases
    rate     how far its rows move
    bag_at   (B + 1,) int64: example b has ids[bag_at[b] : bag_at[b + 1]], and reads their mean; None: ids[b]
    ids      int32
    """

    learned: Any
    rate: float
    bag_at: np.ndarray | None
    ids: np.ndarray


def tree_step(
    grad: Array, loss: Array, hidden: Array, inputs: Inputs, learned: Any, work: Work, tree: Any, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Learn from a batch under a tree; learned: Learned of its nodes (V - 1, D), work: of cpu/tree_softmax.py.

    Every row of a bag moves against the whole gradient of the mean. grad, hidden (B, D): written, what each example found.
    loss (B,) in nats, target (B,) int32, weight (B,): multiplies an example's loss and gradient.
    """
    climb_runs(work.entries, work.cuts, tree.leaf_up, tree.node_up, tree.owner, target)
    _step(grad, loss, hidden, inputs, learned, work, weight, rate)


def negative_step(
    grad: Array, loss: Array, hidden: Array, inputs: Inputs, learned: Any, work: Work, alias: Alias, count: int,
    key: tuple[int, int], target: Array, weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """The same under `count` drawn negatives, which neighbouring examples of one target share; see `step` of cpu/negative.py.

    learned  Learned of the rows of classes (V, D); work: of cpu/negative.py
    key      seed and tick: the same ones draw the same numbers
    """
    numbers = (np.uint64(number % 2**64) for number in key)
    enter_runs(work.entries, work.cuts, *alias, target, count, *numbers)
    _step(grad, loss, hidden, inputs, learned, work, weight, rate)


def _step(
    grad: Array, loss: Array, hidden: Array, inputs: Inputs, learned: Any, work: Work, weight: Array | None, rate: float
) -> None:
    """Take all examples through their entries in `work`, of which the first of a run of one target has all."""
    table, moves = inputs.learned, work.moves if by_row(learned) else None
    scratch = work.entries, work.cuts, work.misses, work.costs, work.tiles, moves
    read = table.rows, table.squares, inputs.bag_at, inputs.ids, hidden.dtype.type(inputs.rate)
    _learn(grad, loss, hidden, *read, *learned, *scratch, weight, hidden.dtype.type(rate))


@launched()
def _learn(
    grad, loss, hidden, table, table_squares, bag_at, ids, table_rate, rows, biases,
    squares, bias_squares, entries, cuts, misses, costs, tiles, moves, weight, rate,
):  # fmt: skip
    missed, spent, steps = misses[0], costs[0], goes(moves, misses, 0)
    first = head = 0
    while first < loss.size:
        last = run_end(entries, first, loss.size)
        after = last if last < loss.size and entries[last, 0] != entries[head, 0] else head
        ask(rows, entries, after, cuts[after, 0], cuts[after, OWNERS])
        for b in range(first, last):
            _read(hidden, table, bag_at, ids, b)
        if last - first == 1 and first == head:
            _visit(
                grad, loss, rows, biases, squares, bias_squares, entries, cuts, missed, costs, moves, steps, hidden, weight,
                first, rate,
            )  # fmt: skip
        else:
            visit(
                grad, loss, rows, biases, squares, bias_squares, entries, cuts, missed, spent, tiles, moves, hidden, weight,
                rate, head, first, last,
            )  # fmt: skip
        for b in range(first, last):
            _write(table, table_squares, bag_at, ids, grad, b, table_rate)
        first, head = last, after


@inlined()
def _visit(
    grad, loss, rows, biases, squares, bias_squares, entries, cuts, misses, costs, moves, steps, hidden, weight, b, rate,
):  # fmt: skip
    """One example alone at all of its rows: without the copies of a group."""
    first, last = cuts[b, 0], cuts[b, OWNERS]
    judge(misses, costs[0], rows, biases, hidden, b, entries, first, last, weight)
    loss[b] = weighed(cost(costs, 0, first, last), weight, b)
    move(
        grad, b, True, rows, biases, squares, bias_squares, misses, moves, steps, hidden, b, entries, first, last, rate,
    )  # fmt: skip


@inlined()
def _read(hidden, table, bag_at, ids, b):
    """hidden[b] from its row, or from its bag; and ask for rows of examples to come."""
    width = hidden.shape[1]
    whole = width // LANES * LANES
    if bag_at is None:
        if b + AHEAD < ids.size:
            prefetch_row(table, ids[b + AHEAD])
        first, last = b, b + 1
    else:
        first, last = bag_at[b], bag_at[b + 1]
        for n in range(last, min(last + (last - first), ids.size)):
            prefetch_row(table, ids[n])
    for d in range(0, whole, LANES):
        _mean(hidden, table, ids, b, first, last, d, LANES)
    if whole < width:
        _mean(hidden, table, ids, b, first, last, whole, width - whole)


@inlined()
def _mean(hidden, table, ids, b, first, last, d, count):
    """Columns d to d + count of the mean of a bag."""
    total, one = splat(hidden.dtype.type(0)), splat(hidden.dtype.type(1))
    for n in range(first, last):
        total = multiply_add(one, load_row(table, ids[n], d, count), total)
    share = splat(hidden.dtype.type(1) / hidden.dtype.type(max(last - first, 1)))
    store_row(hidden, b, d, multiply(share, total), count)


@inlined()
def _write(table, squares, bag_at, ids, grad, b, rate):
    """Every row of example b moves against its whole gradient."""
    square = square_of(grad, b, ZERO, None, squares)
    if bag_at is None:
        move_row(table, squares, ids[b], grad, b, square, rate)
    else:
        for n in range(bag_at[b], bag_at[b + 1]):
            move_row(table, squares, ids[n], grad, b, square, rate)
