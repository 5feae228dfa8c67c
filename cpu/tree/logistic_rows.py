"""Logistic regression along lists of rows: the inner kernel of the tree and of negative sampling.

An example consists of a hidden vector h and a list of entries 2 * row + turn with distinct rows. At each of its rows w

    miss = turn - logistic(w . h);  grad -= miss * w;  w += rate * miss * h;  loss -= log p(turn)

where grad uses the row before its update. cpu/tree/logistic_visit.py computes this; cpu/output/rule.py has the other updates.

Hidden vectors are constant within a batch. So a row's new value depends only on its old value and on its examples in order, not
on other rows. Each row has one of OWNERS *owners*. One thread works for some owners: it processes the examples in order and
updates the owners' rows. Every row takes exactly the steps of the serial loop over examples, bit for bit, at any number of
threads. No two threads write one row, so the hot rows near a root stay in one core's cache. Gradients are summed per owner and
then over the owners. So their last bits depend on OWNERS, but not on the thread count. All rows of one thread are scored
together, since a few of them take as long as sixteen.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.output.rule import by_row, goes
from cpu.runtime.compiled import Array, inlined, launched
from cpu.runtime.memory import empty, prefetch_row, zeros
from cpu.runtime.threads import shared
from cpu.tree.logistic_visit import WIDE, cost, forget, judge, move, weighed
from cpu.vectors.simd import LANES, load_row, multiply_add, splat, store_row

OWNERS = 4  # owners of rows, and the maximum number of threads per step
AHEAD = 2  # prefetch distance in examples
HOT = 256  # lower rows are near the root, and so in the cache
LONGEST = 16  # maximum number of examples per group, see cpu/words.py
COLUMNS = 64  # column padding of a group's tiles: a multiple of their vector length


class Work(NamedTuple):
    """Scratch for up to B examples with up to L entries each, of rows of OWNERS owners, O.

    entries  (B, L + WIDE) int32     2 * row + turn
    cuts     (B, O + 1) int32       entries[b, cuts[b, o]:cuts[b, o + 1]] belong to owner o
    grads    (O * B, D)             owner o's part of the gradient of example b, in row o * B + b
    losses   (O, B)
    misses   (threads, ...)         of the current example or group; padded so that threads share no cache line
    costs    (threads, ...)         -log p(turn) of the current example or group
    moves    (threads, ...)         the update factor of each row of the current example or group, where not its error
    tiles    (...)                  hidden vectors and rows of the current group, adjacent
    """

    entries: np.ndarray
    cuts: np.ndarray
    grads: np.ndarray
    losses: np.ndarray
    misses: np.ndarray
    costs: np.ndarray
    moves: np.ndarray
    tiles: np.ndarray


def workspace(batch: int, width: int, length: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` examples of `width` numbers and up to `length` entries each.

    grads is written by several threads only; an example touches as many of its rows as it has owners.

    Vector padding that is computed but never read is zeroed: denormals left in memory can take five times as long.
    """
    threads = max(OWNERS, numba.config.NUMBA_NUM_THREADS)
    room = LONGEST * -(-length // WIDE) * WIDE + 128
    misses, costs, moves = zeros((3, threads, room), dtype)
    return Work(
        empty((batch, length + WIDE), np.int32),
        empty((batch, OWNERS + 1), np.int32),
        empty((OWNERS * batch, width), dtype),
        empty((OWNERS, batch), dtype),
        misses,
        costs,
        moves,
        zeros(((LONGEST + length + 4) * -(-width // COLUMNS) * COLUMNS,), dtype),
    )


def learn(grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, weight: Array | None, rate: float) -> None:
    """Processes all examples by their entries in `work`: writes grad (B, D) and loss (B,), updates the rows."""
    threads = numba.get_num_threads()
    workers = min(threads, OWNERS)
    if workers == 1:  # accumulates directly
        _own(grad, loss[None], *learned, *work[:2], *_given(learned, work, hidden, weight, rate), workers)
    else:
        with shared(workers):
            _own(work.grads, work.losses, *learned, *work[:2], *_given(learned, work, hidden, weight, rate), workers)
        _add_owners(grad, loss, work.cuts, work.grads, work.losses, threads)


def _given(learned: Any, work: Work, hidden: Array, weight: Array | None, rate: float) -> tuple[Any, ...]:
    moves = work.moves if by_row(learned) else None
    return *work[4:6], moves, hidden, weight, hidden.dtype.type(rate)


# Numba 0.68 loses writes to arrays of a namedtuple inside a parallel loop, so these take the arrays one by one.


@launched(parallel=True)
def _own(
    grads, losses, rows, biases, squares, bias_squares, entries, cuts, misses, costs, moves, hidden, weight, rate, workers,
):  # fmt: skip
    """Processes all examples at the rows of each worker's owners.

    With one worker, grads (B, D) and losses (1, B) are sums over all owners, in the order of the owners.
    """
    batch = hidden.shape[0]
    for worker in numba.prange(workers):
        missed, spent, steps = misses[worker], costs[worker], goes(moves, misses, worker)
        begin, end = worker * OWNERS // workers, (worker + 1) * OWNERS // workers
        for b in range(batch):
            if b + AHEAD < batch:
                first, last = cuts[b + AHEAD, begin], cuts[b + AHEAD, end]
                _ask(rows, biases, squares, bias_squares, entries, b + AHEAD, first, last)
            judge(missed, spent, rows, biases, hidden, b, entries, cuts[b, begin], cuts[b, end], weight)
            fresh = True
            for owner in range(begin, end):
                first, last, part = cuts[b, owner], cuts[b, owner + 1], owner if workers > 1 else 0
                if last > first:
                    loss = weighed(cost(costs, worker, first, last), weight, b)
                    losses[part, b] = loss if fresh else losses[part, b] + loss
                    move(
                        grads, part * batch + b, fresh, rows, biases, squares, bias_squares, missed, moves, steps,
                        hidden, b, entries, first, last, rate,
                    )  # fmt: skip
                    fresh = workers > 1
            if fresh and workers == 1:
                losses[0, b] = 0
                forget(grads, b)


@inlined()
def by_owner(entries, cuts, b, listed, count):
    """Writes the first `count` of `listed`, 2 * row + turn, as the entries of example b, grouped by owner, order kept.

    Row r belongs to owner r % OWNERS.
    """
    for o in range(OWNERS + 1):
        cuts[b, o] = 0
    for i in range(count):
        cuts[b, (listed[i] >> 1) % OWNERS + 1] += 1
    for o in range(OWNERS):
        cuts[b, o + 1] += cuts[b, o]
    for i in range(count):
        o = (listed[i] >> 1) % OWNERS
        entries[b, cuts[b, o]] = listed[i]
        cuts[b, o] += 1  # the next write position; finally the next owner's start
    for o in range(OWNERS, 0, -1):
        cuts[b, o] = cuts[b, o - 1]
    cuts[b, 0] = 0


@launched(parallel=True)
def _add_owners(grad, loss, cuts, grads, losses, threads):
    """Sums the owners' parts of each example, in the order of the owners."""
    batch, width = grad.shape
    for thread in numba.prange(threads):
        for b in range(thread * batch // threads, (thread + 1) * batch // threads):
            loss[b], begin, end = 0, 0, 0  # all owners with entries of the example are in begin:end
            for owner in range(OWNERS):
                if cuts[b, owner + 1] > cuts[b, owner]:
                    loss[b] += losses[owner, b]
                    begin, end = begin if end else owner, owner + 1
            for d in range(0, width, LANES):
                _add(grad, cuts, grads, b, begin, end, d, min(LANES, width - d))


@inlined()
def _add(grad, cuts, grads, b, begin, end, d, count):
    """Writes columns d to d + count of one sum."""
    value = splat(grad.dtype.type(0))
    for owner in range(begin, end):
        if cuts[b, owner + 1] > cuts[b, owner]:
            value = multiply_add(splat(grad.dtype.type(1)), load_row(grads, owner * grad.shape[0] + b, d, count), value)
    store_row(grad, b, d, value, count)


@inlined()
def _ask(rows, biases, squares, bias_squares, entries, b, first, last):
    """Prefetches the rows at entries[b, first:last] and their optimiser state."""
    for i in range(first, last):
        if entries[b, i] >> 1 >= HOT:
            prefetch_row(rows, entries[b, i] >> 1)
            prefetch_row(biases, entries[b, i] >> 1)
            prefetch_row(squares, entries[b, i] >> 1)
            prefetch_row(bias_squares, entries[b, i] >> 1)
