"""Negatives that all rows of a batch share: their weights are gathered once, meet the batch in dense products, and move.

Every class moves against the sum of its gradients as a negative and as the target of some rows, so a step costs 6 B S D
operations for S negatives, nearly all of them in matrix products. What a loss makes of the logits is cpu/sampled_softmax.py's
and cpu/sampled_logistic.py's business.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import draws, rows
from cpu.array import Array
from cpu.batch_rule import pull_biases
from cpu.blas import gemm
from cpu.compiled import called, launched
from cpu.draws import Sampler
from cpu.rule import descend, plain, square_of

ROWS = 64  # rows of a batch that are worked together
NEGATIVES = 128  # negatives whose weights are moved together


class Work(NamedTuple):
    """Scratch of up to B rows and S negatives.

    ids     (S,) int32  the negatives of the last batch
    lower   (S,)        what is taken off the logit of each
    logits  (B, S)      lowered, then their gradients
    both    (S + B, D)  weights of the negatives, then of the targets; then their gradients
    pulls   (S + B,)    the gradients of their biases
    score   (B,)        what is taken off the logits of the targets, then the lowered logits
    """

    ids: np.ndarray
    lower: np.ndarray
    logits: np.ndarray
    both: np.ndarray
    pulls: np.ndarray
    score: np.ndarray


def workspace(batch: int, width: int, negatives: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` rows of `width` numbers, and `negatives` classes beside them."""
    ids, lower = np.empty(negatives, np.int32), np.empty(negatives, dtype)
    both, pulls = np.empty((negatives + batch, width), dtype), np.empty(negatives + batch, dtype)
    logits, score = np.empty((batch, negatives), dtype), np.empty(batch, dtype)
    return Work(ids, lower, logits, both, pulls, score)


def draw(work: Work, sampler: Sampler, count: int, target: Array, seed: int, tick: int) -> int:
    """Write the negatives of a batch to ids, and log p to lower and score: see cpu/draws.py. Returns how many they are."""
    return draws.draw(work.ids, work.lower, work.score[: target.size], sampler, count, target, seed, tick)


class Met(NamedTuple):
    """What a batch meets: views of the scratch.

    ids     (S,) int32  the negatives
    picked  (S, D)      their weights, then their gradients
    own     (B, D)      those of the targets
    pulls, own_pulls    (S,), (B,)
    score   (B,)
    """

    ids: np.ndarray
    picked: np.ndarray
    own: np.ndarray
    pulls: np.ndarray
    own_pulls: np.ndarray
    score: np.ndarray


def gather(work: Work, learned: Any, count: int, target: Array) -> Met:
    """The weights of the first `count` negatives and of the targets; biases go to lower and score."""
    batch, most = target.size, work.ids.size
    ids, picked, own = work.ids[:count], work.both[:count], work.both[most : most + batch]
    pulls, own_pulls, score = work.pulls[:count], work.pulls[most : most + batch], work.score[:batch]
    rows.gather(picked, learned.rows, ids)
    rows.gather(own, learned.rows, target)
    if learned.biases is not None:  # a bias raises a logit, what is in `lower` and `score` lowers it
        work.lower[:count] -= learned.biases[ids]
        score -= learned.biases[target]
    return Met(ids, picked, own, pulls, own_pulls, score)


def move(learned: Any, work: Work, met: Met, hidden: Array, target: Array, rate: float) -> None:
    """Move every class, against the gradients that a loss has left in work.logits, met.own and met.own_pulls."""
    _turn(met.picked, met.pulls, learned.biases, work.logits[: target.size], hidden)
    if plain(learned):
        rows.scatter(learned, met.ids, met.picked, rate)
        rows.scatter(learned, target, met.own, rate)
    else:
        _move(learned, work, met.ids, target, rate)


def _move(learned: Any, work: Work, ids: Array, target: Array, rate: float) -> None:
    """Move each class once, against the sum of its gradients as a negative and as the target of some rows, in this order."""
    place = np.concatenate([np.arange(ids.size), np.arange(target.size) + work.ids.size])
    classes = np.concatenate([ids, target])
    order = np.argsort(classes, kind="stable")
    classes, place = classes[order], place[order]
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    ends = np.append(first, classes.size)
    _move_each(
        *learned, work.both, work.pulls, classes, place, ends, work.both.dtype.type(rate), numba.get_num_threads()
    )


@called(fastmath={"reassoc", "contract"})
def dot(a, b):
    """a . b."""
    total = a[0] * b[0]
    for d in range(1, a.size):
        total += a[d] * b[d]
    return total


@called()
def pull_target(grad, own, hidden, miss):
    """grad <- miss own; own <- miss hidden."""
    for d in range(grad.size):
        grad[d] = miss * own[d]
        own[d] = miss * hidden[d]


@launched(parallel=True)
def _turn(picked, pulls, biases, logits, hidden):
    """The gradient of the negatives' weights and biases, from those of their logits in `logits`."""
    count = picked.shape[0]
    for block in numba.prange(-(-count // NEGATIVES)):
        first, last = block * NEGATIVES, min((block + 1) * NEGATIVES, count)
        gemm(picked[first:last], logits[:, first:last].T, hidden, 1.0, 0.0)
        pull_biases(pulls[first:last], biases, logits[:, first:last])


@launched(parallel=True)
def _move_each(weights, biases, squares, bias_squares, both, pulls, classes, place, ends, rate, threads):
    """Move class classes[ends[i]], each i another one, against the sum of both[place[ends[i] : ends[i + 1]]]."""
    count, one = ends.size - 1, both.dtype.type(1)
    for thread in numba.prange(threads):
        for i in range(thread * count // threads, (thread + 1) * count // threads):
            n = place[ends[i]]
            for other in place[ends[i] + 1 : ends[i + 1]]:
                _add(both, pulls, n, other)
            square = square_of(both, n, pulls[n], biases, squares)
            descend(weights, biases, squares, bias_squares, classes[ends[i]], both, n, pulls[n], square, one, rate)


@called()
def _add(both, pulls, n, other):
    """Gradient n += another one."""
    pulls[n] += pulls[other]
    for d in range(both.shape[1]):
        both[n, d] += both[other, d]
