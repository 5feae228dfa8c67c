"""Groups: neighbouring examples of a batch with the same list of rows learn together, as a small batch of their own.

Skip-gram (cpu/word2vec.py) makes such groups: all context words around one centre word follow the centre word's path. One
after another, as in cpu/logistic_rows.py, each example waits for the rows that the one before has moved. A group reads the
rows once, before any of them moves: so no example waits, a row is written once a group, and the logistic functions are
computed side by side:

    miss[e, n] = turn[n] - logistic(w[n] . h[e]);  grad[e] -= sum_n miss[e, n] w[n];  w[n] += rate sum_e miss[e, n] h[e]

So a visit, in the sense of cpu/rule.py, is that of a group, and its gradient the sum over e. Each of the three is a product of
small matrices, computed in tiles of two or four rows whose sums stay in registers, from copies of h and w side by side.

Ji et al. 2016, "Parallelizing Word2Vec in Shared and Distributed Memory", arXiv:1604.04661. A gradient is the sum of those
over the rows of each half of the owners (cpu/logistic_rows.py).
"""

import numpy as np

from cpu.activation import ZERO, miss_and_loss
from cpu.compiled import inlined
from cpu.group_tiles import TILE, collect, copy, eight_dots, move_two
from cpu.logistic_rows import HOT, LONGEST, OWNERS
from cpu.logistic_visit import WIDE, weighed
from cpu.prefetch import prefetch_row
from cpu.rule import move_bias, paced, paced_by, pushed, scale_of, size
from cpu.simd import LANES, lanes, load_row, multiply_add, splat, store_row, total


@inlined()
def run_end(entries, first, batch):
    """Where the group that begins with example `first` ends: with its target, or LONGEST examples."""
    last = first + 1
    # The first entry, on a path the one nearest to the leaf, identifies the target.
    while last < batch and last - first < LONGEST and entries[last, 0] == entries[first, 0]:
        last += 1
    return last


@inlined()
def ask(rows, entries, head, first, last):
    """Ask for the rows of the next group."""
    for i in range(first, last):
        if entries[head, i] >> 1 >= HOT:
            prefetch_row(rows, entries[head, i] >> 1)


@inlined()
def visit(
    grad, loss, rows, biases, squares, bias_squares, entries, cuts, misses, costs, tiles, moves, hidden, weight, rate, head,
    first, last,
):  # fmt: skip
    """Examples first:last at their rows: write gradients and losses, move the rows.

    head  the example whose entries are those of all of them
    """
    # Unsigned indices: Numba then leaves out its test for negative ones.
    head, b, examples = np.uintp(head), np.uintp(first), np.uintp(last - first)
    begin, middle, end = np.uintp(cuts[head, 0]), np.uintp(cuts[head, OWNERS // 2]), np.uintp(cuts[head, OWNERS])
    count, middle = end - begin, middle - begin
    width, columns = hidden.shape[1], -(-hidden.shape[1] // lanes(tiles, TILE)) * lanes(tiles, TILE)
    pitch = (count + np.uintp(3)) // np.uintp(4) * np.uintp(4)
    used = (examples + (examples & np.uintp(1))) * pitch  # of misses and costs
    nodes = LONGEST * columns  # where they begin in tiles
    copy(tiles, nodes, columns, hidden, b, examples, rows, entries, head, begin, end)
    for e in range(np.uintp(0), examples, np.uintp(2)):
        for n in range(np.uintp(0), pitch, np.uintp(4)):
            eight_dots(misses, costs, tiles, nodes, columns, width, e, n, pitch, entries, head, begin)
    for e in range(examples):
        _add_biases(misses, e * pitch, biases, entries, head, begin, end)
    for at in range(np.uintp(0), used, np.uintp(WIDE)):
        _judge(misses, costs, at)
    _weigh(misses, pitch, weight, b, examples)
    for e in range(examples):
        begins = e * pitch  # each half is weighed alone
        lower = weighed(_sum(costs, begins, begins + middle), weight, b + e)
        loss[b + e] = lower + weighed(_sum(costs, begins + middle, begins + count), weight, b + e)
    _pace(
        moves, misses, pitch, biases, squares, bias_squares, hidden, b, examples, entries, head, begin, end, rate,
    )  # fmt: skip
    plain = squares is None and moves is None
    if plain:
        for at in range(used):
            costs[at] = rate * misses[at]
    for d in range(0, width, lanes(tiles, TILE)):
        here = min(lanes(tiles, TILE), width - d)
        for e in range(np.uintp(0), examples, np.uintp(2)):
            two = e + np.uintp(1) < examples
            collect(grad, b + e, two, misses, e, pitch, tiles, nodes, columns, middle, count, d, here)
        if plain:
            for n in range(np.uintp(0), count, np.uintp(2)):
                move_two(
                    rows, costs, pitch, tiles, nodes, columns, examples, entries, head, begin, n, count, rate, d, here
                )
    if not plain:
        for d in range(0, width, LANES):
            _move(
                rows, squares, misses, moves, pitch, hidden, b, examples, entries, head, begin, end, rate, d,
                min(LANES, width - d),
            )  # fmt: skip


@inlined()
def _add_biases(scores, at, biases, entries, head, begin, end):
    """Add the biases of the rows to the scores of one example."""
    if biases is not None:
        for i in range(begin, end):
            scores[at + i - begin] += biases[entries[head, i] >> 1]


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def _judge(misses, costs, at):
    """Turn WIDE scores at `at`, and turns in costs, into misses, turn - logistic(score), and -log p(turn)."""
    for k in range(WIDE):
        j = at + np.uintp(k)
        misses[j], costs[j] = miss_and_loss(misses[j], costs[j] > 0)


@inlined()
def _weigh(misses, pitch, weight, b, examples):
    """Multiply the misses of each example by its weight."""
    if weight is not None:
        for e in range(examples):
            for at in range(e * pitch, (e + np.uintp(1)) * pitch):
                misses[at] *= weight[b + e]


@inlined()
def _sum(costs, first, last):
    """The sum of costs[first:last], in this order."""
    found = ZERO
    for at in range(first, last):
        found += costs[at]
    return found


@inlined()
def _pace(
    moves, misses, pitch, biases, squares, bias_squares, hidden, b, examples, entries, head, begin, end, rate,
):  # fmt: skip
    """Write by what the move of each row is multiplied, and move the biases; moves None: all by 1."""
    if moves is not None:
        for i in range(begin, end):
            row, pull = entries[head, i] >> 1, ZERO
            for e in range(examples):
                pull += misses[e * pitch + i - begin]
            square = _square(misses, i - begin, pitch, hidden, b, examples, pull, biases)
            push = hidden.dtype.type(1)
            move = paced(push, squares, row, square / hidden.dtype.type(size(hidden.shape[1], biases)))
            move_bias(biases, bias_squares, row, push * pull, move * pull, rate)
            moves[0, i - begin] = move


@inlined()
def _square(misses, place, pitch, hidden, b, examples, pull, biases):
    """The square of the length of a row's gradient, and of its bias's, `pull`."""
    zero, width = splat(hidden.dtype.type(0)), hidden.shape[1]
    found = zero
    for d in range(0, width, LANES):
        part = zero
        for e in range(examples):
            h = load_row(hidden, b + e, d, min(LANES, width - d))
            part = multiply_add(splat(misses[e * pitch + place]), h, part)
        found = multiply_add(part, part, found)
    if biases is None:
        return total(found)
    return total(found) + pull * pull


@inlined()
def _move(rows, squares, misses, moves, pitch, hidden, b, examples, entries, head, begin, end, rate, d, count):
    """Columns d to d + count of the rows."""
    for i in range(begin, end):
        row = entries[head, i] >> 1
        w = load_row(rows, row, d, count)
        step = paced_by(scale_of(rate, squares), moves, 0, i - begin)
        if squares is None:
            for e in range(examples):
                w = multiply_add(splat(step * misses[e * pitch + i - begin]), load_row(hidden, b + e, d, count), w)
        else:
            g = splat(hidden.dtype.type(0))
            for e in range(examples):
                g = multiply_add(splat(step * misses[e * pitch + i - begin]), load_row(hidden, b + e, d, count), g)
            w = pushed(w, splat(hidden.dtype.type(1)), g, squares, row, d, count, rate)
        store_row(rows, row, d, w, count)
