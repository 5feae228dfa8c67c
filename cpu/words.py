"""word2vec's own loop: rows of an input table are the hidden vectors, and are updated before the next example reads them.

    h = table[id], or the mean of table[ids] over a bag;  learn from h at a list of rows;  table[each id] -= rate * gradient

So no update waits for the end of a batch, unlike a gather and scatter of cpu/rows.py around a readout's step. One thread
processes all examples, since each reads what the previous one wrote.

Neighbouring examples with the same target, such as the context words around a centre word, form a group. They share one list of
rows and learn as a small batch: their input rows and the rows of the list are read once, before any update. So a row is written
once per group, and the logistic functions are vectorised:

    miss[e, n] = turn[n] - logistic(w[n] . h[e]);  grad[e] -= sum_n miss[e, n] w[n];  w[n] += rate sum_e miss[e, n] h[e]

The rows of the list use plain SGD, without biases; those of the table may use Adagrad. Each of the three is a product of small
matrices, in tiles of two or four rows whose sums stay in registers. Hidden vectors and rows (nodes) are adjacent in
`tiles` with a stride of `columns` numbers: whole vectors, zero-padded past the last column. misses and costs have `pitch`
numbers per example: one per node, padded to a multiple of four. A gradient is the sum of those over the rows of each half of
the owners (cpu/tree/logistic_rows.py).

Mikolov et al. 2013, arXiv:1310.4546; Ji et al. 2016, "Parallelizing Word2Vec in Shared and Distributed Memory",
arXiv:1604.04661.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from cpu.negative import Alias, enter_runs
from cpu.output.rule import ZERO, square_of
from cpu.rows import move_row
from cpu.runtime.compiled import Array, called, inlined, launched
from cpu.runtime.memory import prefetch_row
from cpu.tree.logistic_rows import HOT, LONGEST, OWNERS, Work
from cpu.tree.logistic_visit import WIDE, cost, judge, move, weigh, weighed
from cpu.tree_softmax import climb_runs
from cpu.vectors.activation import miss_and_loss
from cpu.vectors.simd import (
    LANES,
    Typed,
    add,
    add_picks,
    broadcast,
    intrinsic,
    lanes,
    load,
    load_row,
    multiply,
    multiply_add,
    pick,
    splat,
    store,
    store_row,
    zeros,
)

AHEAD = 8  # prefetch distance in examples
DOT = 512  # bits of the vectors of a dot product: eight sums, one register each
TILE = 2048  # bits of the columns of a tile: with two rows, eight of the widest registers


class Inputs(NamedTuple):
    """The inputs of the examples.

    learned  Learned of the table (R, D); without biases
    rate     learning rate of its rows
    bag_at   (B + 1,) int64: example b reads the mean over ids[bag_at[b] : bag_at[b + 1]]; None: ids[b]
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
    """Takes one training step under a tree; learned: its nodes (V - 1, D) under plain SGD, work: of cpu/tree_softmax.py.

    Every row of a bag is updated with the whole gradient of the mean. grad, hidden (B, D): written, the values of each example.
    loss (B,) in nats, target (B,) int32, weight (B,): multiplies an example's loss and gradient.
    """
    climb_runs(work.entries, work.cuts, tree.leaf_up, tree.node_up, tree.owner, target)
    _step(grad, loss, hidden, inputs, learned, work, weight, rate)


def negative_step(
    grad: Array, loss: Array, hidden: Array, inputs: Inputs, learned: Any, work: Work, alias: Alias, count: int,
    key: tuple[int, int], target: Array, weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Takes one training step with `count` negatives that neighbouring examples of one target share; see cpu/negative.py.

    learned  the rows of classes (V, D) under plain SGD; work: of cpu/negative.py
    key      seed and tick, which determine the draws
    """
    numbers = (np.uint64(number % 2**64) for number in key)
    enter_runs(work.entries, work.cuts, *alias, target, count, *numbers)
    _step(grad, loss, hidden, inputs, learned, work, weight, rate)


def _step(
    grad: Array, loss: Array, hidden: Array, inputs: Inputs, learned: Any, work: Work, weight: Array | None, rate: float
) -> None:
    """Processes all examples by their entries in `work`; the first example of a run of one target has all entries."""
    table, scratch = inputs.learned, (work.entries, work.cuts, work.misses, work.costs, work.tiles)
    read = table.rows, table.squares, inputs.bag_at, inputs.ids, hidden.dtype.type(inputs.rate)
    _learn(grad, loss, hidden, *read, learned.rows, *scratch, weight, hidden.dtype.type(rate))


@launched()
def _learn(
    grad, loss, hidden, table, table_squares, bag_at, ids, table_rate, rows, entries, cuts, misses, costs, tiles, weight, rate,
):  # fmt: skip
    missed, spent = misses[0], costs[0]
    first = head = 0
    while first < loss.size:
        last = _run_end(entries, first, loss.size)
        after = last if last < loss.size and entries[last, 0] != entries[head, 0] else head
        _ask(rows, entries, after, cuts[after, 0], cuts[after, OWNERS])
        for b in range(first, last):
            _read(hidden, table, bag_at, ids, b)
        if last - first == 1 and first == head:
            _learn_one(grad, loss, rows, entries, cuts, missed, costs, hidden, weight, first, rate)
        else:
            _learn_group(
                grad, loss, rows, entries, cuts, missed, spent, tiles, hidden, weight, rate, head, first, last,
            )  # fmt: skip
        for b in range(first, last):
            _write(table, table_squares, bag_at, ids, grad, b, table_rate)
        first, head = last, after


@inlined()
def _learn_one(grad, loss, rows, entries, cuts, misses, costs, hidden, weight, b, rate):
    """Lets a single example learn at all its rows, without the copies of a group."""
    first, last = cuts[b, 0], cuts[b, OWNERS]
    judge(misses, costs[0], rows, None, hidden, b, entries, first, last, weight)
    loss[b] = weighed(cost(costs, 0, first, last), weight, b)
    move(grad, b, True, rows, None, None, None, misses, None, misses, hidden, b, entries, first, last, rate)


@inlined()
def _read(hidden, table, bag_at, ids, b):
    """Writes hidden[b] from its row or bag, and prefetches rows of later examples."""
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
    """Writes columns d to d + count of the mean of a bag."""
    total, one = splat(hidden.dtype.type(0)), splat(hidden.dtype.type(1))
    for n in range(first, last):
        total = multiply_add(one, load_row(table, ids[n], d, count), total)
    share = splat(hidden.dtype.type(1) / hidden.dtype.type(max(last - first, 1)))
    store_row(hidden, b, d, multiply(share, total), count)


@inlined()
def _write(table, squares, bag_at, ids, grad, b, rate):
    """Updates every row of example b with its whole gradient."""
    square = square_of(grad, b, ZERO, None, squares)
    if bag_at is None:
        move_row(table, squares, ids[b], grad, b, square, rate)
    else:
        for n in range(bag_at[b], bag_at[b + 1]):
            move_row(table, squares, ids[n], grad, b, square, rate)


@inlined()
def _run_end(entries, first, batch):
    """Returns the end of the group that begins with example `first`: its target changes, or LONGEST examples."""
    last = first + 1
    # The first entry, on a path the one nearest to the leaf, identifies the target.
    while last < batch and last - first < LONGEST and entries[last, 0] == entries[first, 0]:
        last += 1
    return last


@inlined()
def _ask(rows, entries, head, first, last):
    """Prefetches the rows of the next group."""
    for i in range(first, last):
        if entries[head, i] >> 1 >= HOT:
            prefetch_row(rows, entries[head, i] >> 1)


@inlined()
def _learn_group(grad, loss, rows, entries, cuts, misses, costs, tiles, hidden, weight, rate, head, first, last):
    """Lets examples first:last learn at their rows: writes gradients and losses, updates the rows.

    head  the example whose entries are those of all of them
    """
    # Unsigned indices: Numba then omits its test for negative ones.
    head, b, examples = np.uintp(head), np.uintp(first), np.uintp(last - first)
    begin, middle, end = np.uintp(cuts[head, 0]), np.uintp(cuts[head, OWNERS // 2]), np.uintp(cuts[head, OWNERS])
    count, middle = end - begin, middle - begin
    width, columns = hidden.shape[1], -(-hidden.shape[1] // lanes(tiles, TILE)) * lanes(tiles, TILE)
    pitch = (count + np.uintp(3)) // np.uintp(4) * np.uintp(4)
    used = (examples + (examples & np.uintp(1))) * pitch  # size of misses and costs
    nodes = LONGEST * columns  # their start in tiles
    _copy(tiles, nodes, columns, hidden, b, examples, rows, entries, head, begin, end)
    for e in range(np.uintp(0), examples, np.uintp(2)):
        for n in range(np.uintp(0), pitch, np.uintp(4)):
            _eight_dots(misses, costs, tiles, nodes, columns, width, e, n, pitch, entries, head, begin)
    for at in range(np.uintp(0), used, np.uintp(WIDE)):
        _judge(misses, costs, at)
    for e in range(examples):
        weigh(misses, e * pitch, (e + np.uintp(1)) * pitch, weight, b + e)
    for e in range(examples):
        begins = e * pitch  # each half is weighted alone
        lower = weighed(_sum(costs, begins, begins + middle), weight, b + e)
        loss[b + e] = lower + weighed(_sum(costs, begins + middle, begins + count), weight, b + e)
    for at in range(used):
        costs[at] = rate * misses[at]
    for d in range(0, width, lanes(tiles, TILE)):
        here = min(lanes(tiles, TILE), width - d)
        for e in range(np.uintp(0), examples, np.uintp(2)):
            two = e + np.uintp(1) < examples
            _collect(grad, b + e, two, misses, e, pitch, tiles, nodes, columns, middle, count, d, here)
        for n in range(np.uintp(0), count, np.uintp(2)):
            _move_two(rows, costs, pitch, tiles, nodes, columns, examples, entries, head, begin, n, count, d, here)


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def _judge(misses, costs, at):
    """Turns WIDE scores at `at`, and turns in costs, into errors, turn - logistic(score), and -log p(turn)."""
    for k in range(WIDE):
        j = at + np.uintp(k)
        misses[j], costs[j] = miss_and_loss(misses[j], costs[j] > 0)


@inlined()
def _sum(costs, first, last):
    """Returns the sum of costs[first:last], in this order."""
    summed = ZERO
    for at in range(first, last):
        summed += costs[at]
    return summed


@inlined()
def _copy(tiles, nodes, columns, hidden, b, examples, rows, entries, head, begin, end):
    """Copies the hidden vectors, and at `nodes` the rows, into tiles, zero-padded."""
    for d in range(0, columns, LANES):
        count = max(min(LANES, hidden.shape[1] - d), 0)
        for e in range(examples):
            store(tiles, e * columns + d, LANES, load_row(hidden, b + e, d, count))
        for i in range(begin, end):
            store(tiles, nodes + (i - begin) * columns + d, LANES, load_row(rows, entries[head, i] >> 1, d, count))


@inlined()
def _eight_dots(misses, costs, tiles, nodes, columns, width, e, n, pitch, entries, head, begin):
    """Writes the scores of two examples at four nodes, and their turns to costs; those past the last are never read."""
    s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = zeros(tiles, DOT)
    here, there, count = e * columns, nodes + n * columns, lanes(tiles, DOT)
    for d in range(0, width, count):
        h, k = load(tiles, here + d, count, DOT), load(tiles, here + columns + d, count, DOT)
        w0, w1 = load(tiles, there + d, count, DOT), load(tiles, there + columns + d, count, DOT)
        w2, w3 = load(tiles, there + 2 * columns + d, count, DOT), load(tiles, there + 3 * columns + d, count, DOT)
        s0, s1, s2, s3 = (
            multiply_add(h, w0, s0),
            multiply_add(h, w1, s1),
            multiply_add(h, w2, s2),
            multiply_add(h, w3, s3),
        )
        t0, t1, t2, t3 = (
            multiply_add(k, w0, t0),
            multiply_add(k, w1, t1),
            multiply_add(k, w2, t2),
            multiply_add(k, w3, t3),
        )
    _store_dots(misses, e * pitch + n, pitch, s0, s1, s2, s3, t0, t1, t2, t3)
    for i in range(4):
        turn = entries[head, begin + n + np.uintp(i)] & 1
        costs[e * pitch + n + np.uintp(i)] = costs[(e + np.uintp(1)) * pitch + n + np.uintp(i)] = turn


@inlined()
def _collect(out, row, two, misses, e, pitch, tiles, nodes, columns, middle, last, d, count):
    """Writes columns d to d + count of the gradient of example e, and of e + 1 if two, from the rows before the update."""
    p0, p1 = _pull(misses, e, pitch, tiles, nodes, columns, np.uintp(0), middle, d)
    q0, q1 = _pull(misses, e, pitch, tiles, nodes, columns, middle, last, d)
    back = broadcast(out.dtype.type(-1), TILE)
    store_row(out, row, d, multiply(back, add(p0, q0)), count)
    if two:
        store_row(out, row + np.uintp(1), d, multiply(back, add(p1, q1)), count)


@inlined()
def _pull(misses, e, pitch, tiles, nodes, columns, first, last, d):
    """Returns the sums of nodes first to last, each times its error, for examples e and e + 1."""
    g0 = g1 = zeros(tiles, TILE)
    for n in range(first, last):
        w = load(tiles, nodes + n * columns + d, lanes(tiles, TILE), TILE)
        g0 = multiply_add(broadcast(misses[e * pitch + n], TILE), w, g0)
        g1 = multiply_add(broadcast(misses[(e + np.uintp(1)) * pitch + n], TILE), w, g1)
    return g0, g1


@inlined()
def _move_two(rows, steps, pitch, tiles, nodes, columns, examples, entries, head, begin, n, last, d, count):
    """Updates columns d to d + count of nodes n and n + 1 by plain SGD; steps: errors times the rate."""
    at, size = nodes + n * columns + d, lanes(tiles, TILE)
    w0, w1 = load(tiles, at, size, TILE), load(tiles, at + columns, size, TILE)
    for e in range(examples):
        h, place = load(tiles, e * columns + d, size, TILE), e * pitch + n
        w0 = multiply_add(broadcast(steps[place], TILE), h, w0)
        w1 = multiply_add(broadcast(steps[place + np.uintp(1)], TILE), h, w1)
    store_row(rows, entries[head, begin + n] >> 1, d, w0, count)
    if n + np.uintp(1) < last:
        store_row(rows, entries[head, begin + n + np.uintp(1)] >> 1, d, w1, count)


@intrinsic
def _store_dots(
    typing: Any, array: Any, index: Any, pitch: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Typed:
    """array[index : index + 4] = the lane sums of a, b, c and d; from index + pitch on, those of e, f, g and h.

    array is contiguous and one-dimensional; vectors have at least 8 lanes.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, pitch, *vectors = arguments
        parts = 1  # partial sums per vector
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [add_picks(builder, *pair, *_both(pair[0].type.count, parts)) for pair in pairs]
            parts *= 2
        (sums,) = vectors
        while sums.type.count > parts:
            sums = add_picks(builder, sums, sums, *_halves(sums.type.count, parts))
        data = context.make_array(signature.args[0])(context, builder, array).data
        for first, place in ((0, index), (4, builder.add(index, pitch))):
            four = pick(builder, sums, sums, range(first, first + 4))
            store = builder.store(four, builder.bitcast(builder.gep(data, [place]), four.type.as_pointer()))
            store.align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, a, b, c, d, e, f, g, h), generate


def _halves(lanes: int, parts: int) -> tuple[Sequence[int], Sequence[int]]:
    """Returns the lanes of the lower halves of the parts of a vector, and those of their upper halves."""
    many = lanes // parts
    lower = [part * many + k for part in range(parts) for k in range(many // 2)]
    return lower, [lane + many // 2 for lane in lower]


def _both(lanes: int, parts: int) -> tuple[Sequence[int], Sequence[int]]:
    """Returns the same for two vectors, one after the other."""
    lower, upper = _halves(lanes, parts)
    return [*lower, *(lane + lanes for lane in lower)], [*upper, *(lane + lanes for lane in upper)]


def windows(ids: Array, sentence_at: Array, keep: Array, reach: Array) -> tuple[Any, ...]:
    """Returns the kept words, and the other kept words around each, in order: word k has context[at[k] : at[k + 1]].

    ids (n,) int32; keep (n,) bool; reach (n,) whole numbers: maximum number of words on each side
    sentence_at  (S + 1,) int64 from 0 to n: a window ends with its sentence, and skips words that are not kept

    Returns context and words, int32, at (K + 1,) int64, and each token's and the end's index among the kept words, (n + 1,)
    int64.
    """
    kept_at = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(keep, out=kept_at[1:])
    words, begins = ids[keep], kept_at[sentence_at]
    at = np.zeros(len(words) + 1, np.int64)
    reach = reach[keep]
    _measure(at, begins, reach)
    context = np.empty(at[-1], np.int32)
    _fill(context, words, begins, reach)
    return context, words, at, kept_at


@launched()
def _measure(at, begins, reach):
    """Writes the offset of each word's context."""
    for s in range(begins.size - 1):
        for k in range(begins[s], begins[s + 1]):
            low, high = _ends(k, begins[s], begins[s + 1], reach)
            at[k + 1] = at[k] + high - low - 1


@launched()
def _fill(context, words, begins, reach):
    """Writes the words of each window, without its own."""
    n = 0
    for s in range(begins.size - 1):
        for k in range(begins[s], begins[s + 1]):
            low, high = _ends(k, begins[s], begins[s + 1], reach)
            for other in range(low, high):
                if other != k:
                    context[n] = words[other]
                    n += 1


@called()
def _ends(k, begin, end, reach):
    """Returns the first word of a window, and the first one after it."""
    return max(k - reach[k], begin), min(k + reach[k] + 1, end)
