"""The full softmax over V classes, in two passes over chunks of classes: a (B, V) array never exists. See `Softmax`.

The first pass computes the log of the sum of exponentials of each row; the second computes the logits of a chunk again, turns
them into probabilities, and uses them for both gradients while they are in the cache. Because B V numbers are not kept, hidden
and weights are multiplied twice: 8 B V D operations instead of 6.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import excluded, shards, topk
from cpu.activation import ZERO, exp
from cpu.array import Array
from cpu.batch_rule import move_together, pull_biases
from cpu.blas import gemm
from cpu.compiled import called, launched
from cpu.excluded import Excluded
from cpu.halves import dice, part
from cpu.rule import pace
from cpu.shards import CHUNK, SHARDS


class Work(NamedTuple):
    """Scratch of up to B rows, for each of the S shards.

    logits  (S, B, CHUNK)   of the shard's current chunk; then its probabilities. Numba knows that a row of this array is
                            contiguous, and vectorises; it does not know that of a row of a slice
    grads   (S, B, D)       the shard's part of the gradient
    pulls   (S, CHUNK, D)   the gradient of the rows of the shard's current chunk, where they do not move by plain SGD
    bias_pulls (S, CHUNK)   the same of their biases
    base    (S, B)          a logit that is close to the largest of the shard
    sums    (S, B)          sum of exp(logit - base) over the shard
    norm    (B,)            log of the sum of exp(logit) over all classes
    score   (B,)            logit of the target
    """

    logits: np.ndarray
    grads: np.ndarray
    pulls: np.ndarray
    bias_pulls: np.ndarray
    base: np.ndarray
    sums: np.ndarray
    norm: np.ndarray
    score: np.ndarray


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Scratch for calls with up to `batch` rows of `width` numbers."""
    logits, grads = np.empty((SHARDS, batch, CHUNK), dtype), np.empty((SHARDS, batch, width), dtype)
    pulls, bias_pulls = np.empty((SHARDS, CHUNK, width), dtype), np.empty((SHARDS, CHUNK), dtype)
    return Work(logits, grads, pulls, bias_pulls, *np.empty((2, SHARDS, batch), dtype), *np.empty((2, batch), dtype))


def step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rule: Any
) -> None:
    """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; every row moves against the gradient summed over B."""
    log_prob(loss, learned, work, hidden, target)
    np.negative(loss, out=loss)
    if weight is not None:
        loss *= weight
    scratch = work.logits, work.grads, work.pulls, work.bias_pulls
    _learn(*learned, *scratch, hidden, target, work.norm, weight, *pace(rule, hidden.dtype), dice(rule))
    _gather(grad, work.grads, learned.rows.shape[0], numba.get_num_threads())


def log_prob(out: Array, learned: Any, work: Work, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b])."""
    _measure(work.logits, work.base, work.sums, work.score, learned.rows, learned.biases, hidden, target)
    normalise(work.norm[: out.size], work.base, work.sums, learned.rows.shape[0])
    np.subtract(work.score[: out.size], work.norm[: out.size], out=out)


def best(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array) -> None:
    """Write the k most likely classes of each row, most likely first; ids and log_probs (B, k).

    Exact. Among equal logits the lower id comes first.
    """
    best_without(ids, log_probs, learned, work, hidden, excluded.nothing(len(hidden)))


def best_without(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array, without: Excluded) -> None:
    """As `best`, without the classes that each row excludes, see cpu/excluded.py.

    The probabilities are those among all classes. Where fewer than k are left, ids ends with -1 and log_probs with -inf.
    """
    (batch, k), classes = ids.shape, learned.rows.shape[0]
    found = np.full((SHARDS, batch, min(k, shards.largest(classes))), -1, ids.dtype)
    scores = np.full(found.shape, -np.inf, log_probs.dtype)
    _search(found, scores, work.logits, work.base, work.sums, learned.rows, learned.biases, hidden, *without)
    normalise(work.norm[:batch], work.base, work.sums, classes)
    ids[:], log_probs[:] = -1, -np.inf
    topk.merge(ids, log_probs, found, scores, numba.get_num_threads())
    np.subtract(log_probs, work.norm[:batch, None], out=log_probs)


@launched(parallel=True)
def _measure(logits, base, sums, score, weights, biases, hidden, target):
    """The first pass: base and sums of every shard, and the score of the targets."""
    batch = hidden.shape[0]
    for shard in numba.prange(SHARDS):
        first, last = shards.part(shard, weights.shape[0])
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            chunk(logits[shard, :batch, : end - begin], weights, biases, begin, end, hidden)
            for b in range(batch):
                if begin <= target[b] < end:
                    score[b] = logits[shard, b, target[b] - begin]
                count(base[shard], sums[shard], b, logits[shard, b, : end - begin], begin == first)


@called()
def chunk(logits, weights, biases, begin, end, hidden):
    """Write the logits (B, end - begin) of some classes."""
    gemm(logits, hidden, part(weights, begin, end).T, 1.0, 0.0)
    if biases is not None:
        for b in range(logits.shape[0]):
            for j in range(end - begin):
                logits[b, j] += biases[begin + j]


@called(error_model="numpy")
def count(base, sums, b, logits, new):
    """Add the exponentials of some logits to row b's sum.

    The base is the largest logit of the row's first chunk, and changes only when a sum overflows: nothing is lost before,
    and most chunks are spared the search for their maximum.
    """
    if new:
        base[b] = logits.max()
        sums[b] = 0
    total = sums[b] + sum_exp(logits, base[b])
    if math.isinf(total):
        before = base[b] + math.log(sums[b])
        base[b] = max(before, logits.max())
        total = exp(before - base[b]) + sum_exp(logits, base[b])
    sums[b] = total


@called(error_model="numpy", fastmath={"reassoc", "contract"})
def sum_exp(logits, base):
    """The sum of exp(logit - base) over a contiguous vector of at least one."""
    total = ZERO
    for j in range(logits.size):
        total += exp(logits[j] - base)
    return total


@launched(error_model="numpy")
def normalise(norm, base, sums, classes):
    """Write norm from the shards' base and sums."""
    for b in range(norm.size):
        most = -np.inf
        for shard in range(SHARDS):
            first, last = shards.part(shard, classes)
            if first < last:
                base[shard, b] += math.log(sums[shard, b])
                most = max(most, base[shard, b])
        total = 0.0
        for shard in range(SHARDS):
            first, last = shards.part(shard, classes)
            if first < last:
                total += math.exp(base[shard, b] - most)
        norm[b] = most + math.log(total)


@launched(parallel=True)
def _learn(
    weights,
    biases,
    squares,
    bias_squares,
    logits,
    grads,
    pulls,
    bias_pulls,
    hidden,
    target,
    norm,
    weight,
    rate,
    keep,
    clip,
    dice,
):
    """The second pass: write every shard's part of the gradient, and move the weights."""
    batch = hidden.shape[0]
    for shard in numba.prange(SHARDS):
        first, last = shards.part(shard, weights.shape[0])
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            miss = logits[shard, :batch, : end - begin]
            chunk(miss, weights, biases, begin, end, hidden)
            for b in range(batch):
                probabilities(logits[shard, b, : end - begin], norm[b])
                if begin <= target[b] < end:
                    miss[b, target[b] - begin] -= 1
                weigh(logits[shard, b, : end - begin], weight, b)
            gemm(grads[shard, :batch], miss, part(weights, begin, end), 1.0, begin > first)
            pull_biases(bias_pulls[shard], biases, miss)
            move_together(
                weights, biases, squares, bias_squares, begin, end, pulls[shard], bias_pulls[shard], miss.T, hidden,
                1.0, rate, keep, clip, dice,
            )  # fmt: skip


@called(error_model="numpy")
def probabilities(logits, norm):
    """Every logit of a contiguous vector becomes exp(logit - norm)."""
    for j in range(logits.size):
        logits[j] = exp(logits[j] - norm)


@called()
def weigh(misses, weight, b):
    """Multiply a contiguous vector by the weight of example b."""
    if weight is not None:
        for j in range(misses.size):
            misses[j] *= weight[b]


@launched(parallel=True)
def _gather(grad, grads, classes, threads):
    """Add up the shards' parts of the gradient."""
    size = -(-grad.shape[0] // threads)
    for thread in numba.prange(threads):
        for b in range(thread * size, min((thread + 1) * size, grad.shape[0])):
            for d in range(grad.shape[1]):
                grad[b, d] = 0
            for shard in range(SHARDS):
                first, last = shards.part(shard, classes)
                if first < last:
                    for d in range(grad.shape[1]):
                        grad[b, d] += grads[shard, b, d]


@launched(parallel=True)
def _search(found, scores, logits, base, sums, weights, biases, hidden, out_first, out_last, left_out):
    """Write the best of every shard, as a heap, and its base and sums."""
    batch = hidden.shape[0]
    for shard in numba.prange(SHARDS):
        first, last = shards.part(shard, weights.shape[0])
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            chunk(logits[shard, :batch, : end - begin], weights, biases, begin, end, hidden)
            for b in range(batch):
                skip = excluded.seek(left_out, out_first[b], out_last[b], begin)
                for j in range(end - begin):
                    if skip < out_last[b] and left_out[skip] == begin + j:
                        skip += 1
                    else:
                        topk.push(found[shard, b], scores[shard, b], begin + j, logits[shard, b, j])
                count(base[shard], sums[shard], b, logits[shard, b, : end - begin], begin == first)
