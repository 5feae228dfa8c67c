"""The softmax over the target of each row and a few negatives, which are drawn once a batch and shared by its rows.

Every class v is among the negatives with a known probability p(v). A logit is lowered by log p, as Jean et al. 2015
("On Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2) do, and a negative that equals
the target of the row is left out: then the gradient approaches that of the full softmax, and the weights learn its logits.

A batch makes S draws with replacement, a function of the seed and the tick alone, and keeps the distinct classes:
p(v) = 1 - (1 - q(v))^S is exact; drawing until there are so many distinct classes would give an estimate only.
With S >= V every class is taken and p = 1: the full softmax.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import rows
from cpu.array import Array
from cpu.batch_rule import pull_biases
from cpu.blas import gemm
from cpu.logistic_visit import weighed
from cpu.rule import descend, pace, plain, square_of
from cpu.softmax import probabilities, sum_exp, weigh
from cpu.splitmix import GOLDEN, mix

ROWS = 64  # rows of a batch that are worked together
NEGATIVES = 128  # negatives whose weights are moved together


class Sampler(NamedTuple):
    """The distribution q of one draw.

    cumulative  (V,) float64  q(0) + ... + q(v)
    drawn       (V,) bool     scratch, False between draws
    """

    cumulative: np.ndarray
    drawn: np.ndarray


class Work(NamedTuple):
    """Scratch of up to B rows and S negatives.

    ids     (S,) int32  the negatives of the last batch
    lower   (S,)        log p of each
    logits  (B, S)      lowered, then probabilities
    both    (S + B, D)  weights of the negatives, then of the targets; then their gradients
    pulls   (S + B,)    the gradients of their biases
    score   (B,)        log p of the targets, then their lowered logit
    """

    ids: np.ndarray
    lower: np.ndarray
    logits: np.ndarray
    both: np.ndarray
    pulls: np.ndarray
    score: np.ndarray


def log_uniform(classes: int) -> Sampler:
    """q(v) = log((v + 2) / (v + 1)) / log(V + 1), close to Zipf's law for classes in falling order of frequency."""
    ranks = np.arange(classes)
    return _sampler(np.log1p(1 / (ranks + 1)))


def unigram(counts: Array, power: float = 0.75) -> Sampler:
    """q(v) in proportion to counts[v]^power (Mikolov et al. 2013), at least a hundredth of the mean."""
    weights = np.asarray(counts, np.float64) ** power
    mean = weights.mean()
    return _sampler(np.maximum(weights, mean / 100) if mean else np.ones_like(weights))


def _sampler(weights: Array) -> Sampler:
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]
    return Sampler(cumulative, np.zeros(weights.size, np.bool_))


def workspace(batch: int, width: int, negatives: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` rows of `width` numbers, and `negatives` draws."""
    ids, lower = np.empty(negatives, np.int32), np.empty(negatives, dtype)
    both, pulls = np.empty((negatives + batch, width), dtype), np.empty(negatives + batch, dtype)
    return Work(ids, lower, np.empty((batch, negatives), dtype), both, pulls, np.empty(batch, dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, sampler: Sampler, hidden: Array, target: Array,
    weight: Array | None, rule: Any, seed: int, tick: int,
) -> Array:  # fmt: skip
    """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; rows move against the gradient summed over B.

    loss is that of the softmax over the target and the negatives, with lowered logits. Returns the negatives, which are
    scratch: valid until the next step.
    """
    batch, draws, weights = hidden.shape[0], work.ids.size, learned.rows
    score = work.score[:batch]
    count = _draw(work.ids, work.lower, score, sampler.cumulative, sampler.drawn, target, seed, tick)
    ids, picked, own = work.ids[:count], work.both[:count], work.both[draws : draws + batch]
    pulls, own_pulls = work.pulls[:count], work.pulls[draws : draws + batch]
    rows.gather(picked, weights, ids)
    rows.gather(own, weights, target)
    if learned.biases is not None:  # a bias raises a logit, what is in `lower` and `score` lowers it
        work.lower[:count] -= learned.biases[ids]
        score -= learned.biases[target]
    _learn(grad, loss, own, own_pulls, score, work.logits, picked, ids, work.lower, hidden, target, weight)
    _turn(picked, pulls, learned.biases, work.logits[:batch], hidden)
    if plain(learned, rule):
        rows.scatter(learned, ids, picked, rule)
        rows.scatter(learned, target, own, rule)
    else:
        _move(learned, work, ids, target, rule)
    return ids


def _move(learned: Any, work: Work, ids: Array, target: Array, rule: Any) -> None:
    """Move each class once, against the sum of its gradients as a negative and as the target of some rows, in this order."""
    place = np.concatenate([np.arange(ids.size), np.arange(target.size) + work.ids.size])
    classes = np.concatenate([ids, target])
    order = np.argsort(classes, kind="stable")
    classes, place = classes[order], place[order]
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    ends = np.append(first, classes.size)
    numbers = pace(rule, learned.rows.dtype)
    _move_each(*learned, work.both, work.pulls, classes, place, ends, *numbers, numba.get_num_threads())


@numba.njit(cache=True, nogil=True)
def _draw(ids, lower, score, cumulative, drawn, target, seed, tick):
    """Write the distinct negatives, log p of them and log p of the targets (to score); returns how many they are."""
    draws = ids.size
    if draws >= cumulative.size:
        for v in range(cumulative.size):
            ids[v], lower[v] = v, 0
        score[:] = 0
        return cumulative.size
    count = 0
    state = mix(np.uint64(seed) ^ mix(np.uint64(tick)))
    for i in range(draws):
        v = np.searchsorted(cumulative, _uniform(state, i), side="right")
        if not drawn[v]:
            drawn[v] = True
            ids[count], lower[count] = v, _log_p(cumulative, v, draws)
            count += 1
    for i in range(count):
        drawn[ids[i]] = False
    for b in range(target.size):
        score[b] = _log_p(cumulative, target[b], draws)
    return count


@numba.njit(cache=True, nogil=True)
def _log_p(cumulative, v, draws):
    q = cumulative[v] - (cumulative[v - 1] if v else 0.0)
    return math.log(-math.expm1(draws * math.log1p(-q)))


@numba.njit(cache=True, nogil=True)
def _uniform(state, i):
    """The i-th number of a stream, in [0, 1)."""
    return float(mix(state + np.uint64(i + 1) * GOLDEN) >> np.uint64(11)) * 2.0**-53


@numba.njit(parallel=True, cache=True, nogil=True)
def _learn(grad, loss, own, own_pulls, score, logits, picked, ids, lower, hidden, target, weight):
    """Write loss, grad, probabilities to logits, and to `own` the gradient of the targets' weights; all times the weight."""
    count = ids.size
    for block in numba.prange(-(-loss.size // ROWS)):
        first, last = block * ROWS, min((block + 1) * ROWS, loss.size)
        gemm(logits[first:last, :count], hidden[first:last], picked.T, 1.0, 0.0)
        for b in range(first, last):
            row = logits[b, :count]
            _lower(row, ids, lower, target[b])
            score[b] = _dot(own[b], hidden[b]) - score[b]
            norm = _norm(row, score[b])
            probabilities(row, norm)
            loss[b] = norm - score[b]
            own_pulls[b] = weighed(np.expm1(-loss[b]), weight, b)
            loss[b] = weighed(loss[b], weight, b)
            weigh(row, weight, b)
            _own(grad[b], own[b], hidden[b], own_pulls[b])
        gemm(grad[first:last], logits[first:last, :count], picked, 1.0, 1.0)


@numba.njit(cache=True, nogil=True)
def _lower(row, ids, lower, target):
    for j in range(row.size):
        row[j] = -np.inf if ids[j] == target else row[j] - lower[j]


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = a[0] * b[0]
    for d in range(1, a.size):
        total += a[d] * b[d]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _norm(row, score):
    """log(exp(score) + sum of exp(row))."""
    base = score
    total = 1 + sum_exp(row, base)
    if math.isinf(total):
        base = row.max()
        total = math.exp(score - base) + sum_exp(row, base)
    return row.dtype.type(base + math.log(total))


@numba.njit(cache=True, nogil=True)
def _own(grad, own, hidden, miss):
    """grad <- miss own; own <- miss hidden."""
    for d in range(grad.size):
        grad[d] = miss * own[d]
        own[d] = miss * hidden[d]


@numba.njit(parallel=True, cache=True, nogil=True)
def _turn(picked, pulls, biases, logits, hidden):
    """The gradient of the negatives' weights and biases, from their probabilities in `logits`."""
    count = picked.shape[0]
    for block in numba.prange(-(-count // NEGATIVES)):
        first, last = block * NEGATIVES, min((block + 1) * NEGATIVES, count)
        gemm(picked[first:last], logits[:, first:last].T, hidden, 1.0, 0.0)
        pull_biases(pulls[first:last], biases, logits[:, first:last])


@numba.njit(parallel=True, cache=True, nogil=True)
def _move_each(weights, biases, squares, bias_squares, both, pulls, classes, place, ends, rate, keep, clip, threads):
    """Move class classes[ends[i]], each i another one, against the sum of both[place[ends[i] : ends[i + 1]]]."""
    count, one = ends.size - 1, weights.dtype.type(1)
    for thread in numba.prange(threads):
        for i in range(thread * count // threads, (thread + 1) * count // threads):
            n = place[ends[i]]
            for other in place[ends[i] + 1 : ends[i + 1]]:
                _add(both, pulls, n, other)
            square = square_of(both, n, pulls[n], biases, squares, clip)
            descend(
                weights,
                biases,
                squares,
                bias_squares,
                classes[ends[i]],
                both,
                n,
                pulls[n],
                square,
                one,
                rate,
                keep,
                clip,
            )


@numba.njit(cache=True, nogil=True)
def _add(both, pulls, n, other):
    """Gradient n += another one."""
    pulls[n] += pulls[other]
    for d in range(both.shape[1]):
        both[n, d] += both[other, d]
