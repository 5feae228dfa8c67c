"""Negatives shared by all rows of a batch: their weights are gathered once, used in dense products, and updated.

A batch makes S draws with replacement, a function of the seed and the tick alone, and keeps the distinct classes. So
p(v) = 1 - (1 - q(v))^S is exact; drawing a fixed number of distinct classes would give only an estimate. If S >= V, every
class is taken and p = 1.

Every class is updated with the sum of its gradients as a negative and as a target. A step costs 6 B S D operations for S
negatives, nearly all in matrix products. The losses are in cpu/sampled_softmax.py and cpu/sampled_logistic.py.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import rows
from cpu.output.rule import descend, plain, pull_biases, square_of
from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.blas import gemm
from cpu.vectors.splitmix import GOLDEN, mix

ROWS = 64  # rows of a batch per block
NEGATIVES = 128  # negatives per block of gradients


class Sampler(NamedTuple):
    """The distribution q of one draw.

    cumulative  (V,) float64  q(0) + ... + q(v)
    drawn       (V,) bool     scratch, False between draws
    """

    cumulative: np.ndarray
    drawn: np.ndarray


def log_uniform(classes: int) -> Sampler:
    """Returns q(v) = log((v + 2) / (v + 1)) / log(V + 1), near Zipf's law for classes in descending order of frequency."""
    ranks = np.arange(classes)
    return _sampler(np.log1p(1 / (ranks + 1)))


def unigram(counts: Array) -> Sampler:
    """Returns q(v) proportional to counts[v]^0.75 (Mikolov et al. 2013), at least a hundredth of the mean."""
    weights = np.asarray(counts, np.float64) ** 0.75
    mean = weights.mean()
    return _sampler(np.maximum(weights, mean / 100) if mean else np.ones_like(weights))


def uniform(classes: int) -> Sampler:
    """Returns q(v) = 1 / V."""
    return _sampler(np.ones(classes))


def _sampler(weights: Array) -> Sampler:
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]
    return Sampler(cumulative, np.zeros(weights.size, np.bool_))


class Work(NamedTuple):
    """Scratch for up to B rows and S negatives.

    ids     (S,) int32  negatives of the last batch
    lower   (S,)        amounts subtracted from their logits
    logits  (B, S)      lowered logits, then their gradients
    both    (S + B, D)  weights of the negatives, then of the targets; later their gradients
    pulls   (S + B,)    gradients of their biases
    score   (B,)        amounts subtracted from the targets' logits, then the lowered logits
    """

    ids: np.ndarray
    lower: np.ndarray
    logits: np.ndarray
    both: np.ndarray
    pulls: np.ndarray
    score: np.ndarray


def workspace(batch: int, width: int, negatives: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers, and `negatives` classes."""
    ids, lower = np.empty(negatives, np.int32), np.empty(negatives, dtype)
    both, pulls = np.empty((negatives + batch, width), dtype), np.empty(negatives + batch, dtype)
    logits, score = np.empty((batch, negatives), dtype), np.empty(batch, dtype)
    return Work(ids, lower, logits, both, pulls, score)


def draw(work: Work, sampler: Sampler, count: int, target: Array, seed: int, tick: int) -> int:
    """Writes the distinct negatives of `count` draws to ids, their log p to lower, and that of the targets (B,) to score.

    Returns the number of negatives: all classes if count >= V.
    """
    return int(_draw(work.ids, work.lower, work.score[: target.size], *sampler, count, target, seed, tick))


class Met(NamedTuple):
    """Views of the scratch for one batch, see Work.

    ids     (S,) int32  the negatives
    picked  (S, D)      their weights, then the gradients of these
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
    """Gathers the weights of the first `count` negatives and of the targets; subtracts biases from lower and score."""
    batch, most = target.size, work.ids.size
    ids, picked, own = work.ids[:count], work.both[:count], work.both[most : most + batch]
    pulls, own_pulls, score = work.pulls[:count], work.pulls[most : most + batch], work.score[:batch]
    rows.gather(picked, learned.rows, ids)
    rows.gather(own, learned.rows, target)
    if learned.biases is not None:  # a bias raises a logit, `lower` and `score` are subtracted from it
        work.lower[:count] -= learned.biases[ids]
        score -= learned.biases[target]
    return Met(ids, picked, own, pulls, own_pulls, score)


def move(learned: Any, work: Work, met: Met, hidden: Array, target: Array, rate: float) -> None:
    """Updates every class with the gradients that a loss wrote to work.logits, met.own and met.own_pulls.

    Except under plain SGD, each class is updated once, with the sum of its gradients as a negative and as a target, in this
    order.
    """
    _turn(met.picked, met.pulls, learned.biases, work.logits[: target.size], hidden)
    if plain(learned):
        rows.scatter(learned, met.ids, met.picked, rate)
        rows.scatter(learned, target, met.own, rate)
        return
    place = np.concatenate([np.arange(met.ids.size), np.arange(target.size) + work.ids.size])
    classes = np.concatenate([met.ids, target])
    order = np.argsort(classes, kind="stable")
    classes, place = classes[order], place[order]
    ends = np.append(np.flatnonzero(np.diff(classes, prepend=-1)), classes.size)
    given = work.both, work.pulls, classes, place, ends, work.both.dtype.type(rate), numba.get_num_threads()
    _move_each(*learned, *given)


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


@launched()
def _draw(ids, lower, score, cumulative, drawn, draws, target, seed, tick):
    if draws >= cumulative.size:
        for v in range(cumulative.size):
            ids[v], lower[v] = v, 0
        score[:] = 0
        return cumulative.size
    count = 0
    for b in range(target.size):
        score[b] = _log_p(cumulative, target[b], draws)
    state = mix(np.uint64(seed) ^ mix(np.uint64(tick)))
    for i in range(draws):
        v = np.searchsorted(cumulative, _uniform(state, i), side="right")
        if not drawn[v]:
            drawn[v] = True
            ids[count], lower[count] = v, _log_p(cumulative, v, draws)
            count += 1
    for i in range(count):
        drawn[ids[i]] = False
    return count


@called()
def _log_p(cumulative, v, draws):
    q = cumulative[v] - (cumulative[v - 1] if v else 0.0)
    return math.log(-math.expm1(draws * math.log1p(-q)))


@called()
def _uniform(state, i):
    """Returns the i-th number of a stream, in [0, 1)."""
    return float(mix(state + np.uint64(i + 1) * GOLDEN) >> np.uint64(11)) * 2.0**-53


@launched(parallel=True)
def _turn(picked, pulls, biases, logits, hidden):
    """Writes the gradients of the negatives' weights and biases, from those of their logits in `logits`."""
    count = picked.shape[0]
    for block in numba.prange(-(-count // NEGATIVES)):
        first, last = block * NEGATIVES, min((block + 1) * NEGATIVES, count)
        gemm(picked[first:last], logits[:, first:last].T, hidden, 1.0, 0.0)
        pull_biases(pulls[first:last], biases, logits[:, first:last])


@launched(parallel=True)
def _move_each(weights, biases, squares, bias_squares, both, pulls, classes, place, ends, rate, threads):
    """Updates class classes[ends[i]], distinct for each i, with the gradient sum of both[place[ends[i] : ends[i + 1]]]."""
    count, one = ends.size - 1, both.dtype.type(1)
    for thread in numba.prange(threads):
        for i in range(thread * count // threads, (thread + 1) * count // threads):
            n = place[ends[i]]
            for other in place[ends[i] + 1 : ends[i + 1]]:
                pulls[n] += pulls[other]
                for d in range(both.shape[1]):
                    both[n, d] += both[other, d]
            square = square_of(both, n, pulls[n], biases, squares)
            descend(weights, biases, squares, bias_squares, classes[ends[i]], both, n, pulls[n], square, one, rate)
