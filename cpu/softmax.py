"""The full softmax over V classes, in two passes over chunks of classes. See `Softmax`.

The first pass turns the logits of a chunk into exponentials, exp(logit - base). While these are in the cache, it sums them and
multiplies them with the chunk's weights. Both results lack only one factor per row, exp(base - norm), which is available at the
end of the pass. So each exponential is computed once, and so is hidden . weights if the exponentials are kept. The second pass
multiplies the exponentials with the hidden vectors, each times its factor, and updates the weights. The target's -1 is applied
row by row outside the products.

KEPT bytes of exponentials are kept; other chunks are recomputed. A step takes 6 B V D operations if all are kept, 8 B V D if
none is. The products take nine tenths of the time.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.output import topk
from cpu.output.rule import move_by
from cpu.output.topk import Excluded, none_excluded, seek
from cpu.runtime.compiled import Array, called, launched
from cpu.tree.logistic_visit import weighed
from cpu.vectors import blas
from cpu.vectors.activation import ZERO, exp
from cpu.vectors.blas import CHUNK, SHARDS, gemm

KEPT = 392 << 20  # bytes of exponentials kept by a step: of 100,000 classes for 1,024 rows of float32
LARGE = 1e24  # a sum of exponentials above it gets a new base: products are then far from infinite


class Work(NamedTuple):
    """Scratch of up to B rows, for each of the S shards.

    logits  (S + N, B, CHUNK)  the shard's current chunk; after these S, the exponentials of the first N chunks, for a step.
                            Memory is committed at the first write, so unused chunks cost nothing. Numba knows that a row of
                            this array is contiguous, and vectorises; it does not for a row of a slice
    grads   (S, B, D)       sum of exp(logit - base) times the weights over the shard; then the hidden vectors times `scales`
    pulls   (S, CHUNK, D)   the gradient of the rows of the shard's current chunk
    bias_pulls (S, CHUNK)   the same for their biases
    base    (S, B)          a logit that is not far below the largest of the shard
    sums    (S, B)          sum of exp(logit - base) over the shard
    scales  (S, B)          the factor from exp(logit - base) to the probability, times the weight of the example
    valid   (S,) int64      the first class of the shard whose exponentials use the final bases of all rows
    norm    (B,)            log of the sum of exp(logit) over all classes
    score   (B,)            logit of the target
    """

    logits: np.ndarray
    grads: np.ndarray
    pulls: np.ndarray
    bias_pulls: np.ndarray
    base: np.ndarray
    sums: np.ndarray
    scales: np.ndarray
    valid: np.ndarray
    norm: np.ndarray
    score: np.ndarray


def workspace(batch: int, width: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers."""
    kept = KEPT // (max(batch, 1) * CHUNK * np.dtype(dtype).itemsize)
    logits, grads = np.empty((SHARDS + kept, batch, CHUNK), dtype), np.empty((SHARDS, batch, width), dtype)
    pulls, bias_pulls = np.empty((SHARDS, CHUNK, width), dtype), np.empty((SHARDS, CHUNK), dtype)
    base, sums, scales = np.empty((3, SHARDS, batch), dtype)
    norm, score = np.empty((2, batch), dtype)
    valid = np.empty(SHARDS, np.int64)
    return Work(logits, grads, pulls, bias_pulls, base, sums, scales, valid, norm, score)


def step(
    grad: Array, loss: Array, learned: Any, work: Work, hidden: Array, target: Array, weight: Array | None, rate: float
) -> None:
    """Writes grad (B, D) = d loss / d hidden and loss (B,) in nats; updates every row with the gradient summed over B."""
    _log_prob(loss, learned, work, hidden, target, True)
    np.negative(loss, out=loss)
    if weight is not None:
        loss *= weight
    asked = hidden, target, work.norm, weight
    _gather(grad, work.grads, work.scales, work.base, learned.rows, *asked, numba.get_num_threads())
    scratch = work.logits, work.grads, work.pulls, work.bias_pulls, work.base, work.scales, work.valid
    _learn(*learned, *scratch, hidden, target, weight, hidden.dtype.type(rate))


def log_prob(out: Array, learned: Any, work: Work, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | hidden[b])."""
    _log_prob(out, learned, work, hidden, target, False)


def _log_prob(out: Array, learned: Any, work: Work, hidden: Array, target: Array, learns: bool) -> None:
    """Computes `log_prob`; learns: keeps the arrays that a step needs."""
    scratch = work.logits, work.grads, work.base, work.sums, work.score, work.valid
    _measure(*scratch, learned.rows, learned.biases, hidden, target, learns)
    normalise(work.norm[: out.size], work.base, work.sums, learned.rows.shape[0])
    np.subtract(work.score[: out.size], work.norm[: out.size], out=out)


def best(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array) -> None:
    """Writes each row's k likeliest classes, likeliest first, ties by ascending id, exactly; ids, log_probs (B, k)."""
    best_without(ids, log_probs, learned, work, hidden, none_excluded(len(hidden)))


def best_without(ids: Array, log_probs: Array, learned: Any, work: Work, hidden: Array, without: Excluded) -> None:
    """Computes `best` without the classes that each row excludes, see cpu/output/topk.py.

    The probabilities are those among all classes. If fewer than k remain, ids ends with -1 and log_probs with -inf.
    """
    (batch, k), classes = ids.shape, learned.rows.shape[0]
    heaps = np.full((len(work.base), batch, min(k, blas.largest_shard(len(work.base), classes))), -1, ids.dtype)
    scores = np.full(heaps.shape, -np.inf, log_probs.dtype)
    _search(heaps, scores, work.logits, work.base, work.sums, learned.rows, learned.biases, hidden, *without)
    normalise(work.norm[:batch], work.base, work.sums, classes)
    ids[:], log_probs[:] = -1, -np.inf
    topk.merge(ids, log_probs, heaps, scores, numba.get_num_threads())
    np.subtract(log_probs, work.norm[:batch, None], out=log_probs)


@launched(parallel=True, error_model="numpy")
def _measure(logits, grads, base, sums, score, valid, weights, biases, hidden, target, learns):
    """First pass: base and sums of every shard, and the targets' logits; learns: also grads and kept exponentials."""
    batch = hidden.shape[0]
    for shard in numba.prange(base.shape[0]):
        first, last = blas.shard_part(shard, base.shape[0], weights.shape[0])
        valid[shard] = first
        for begin in range(first, last, CHUNK):
            end, at = min(begin + CHUNK, last), _place(logits, shard, base.shape[0], begin, learns)
            some = logits[at, :batch, : end - begin]
            chunk(some, weights, biases, begin, end, hidden)
            for b in range(batch):
                row = logits[at, b, : end - begin]
                if begin <= target[b] < end:
                    score[b] = row[target[b] - begin]
                if begin == first:
                    base[shard, b], sums[shard, b] = mean(row), 0
                total = sums[shard, b] + exponentials(row, base[shard, b])
                if total > LARGE:
                    chunk(some[b : b + 1], weights, biases, begin, end, hidden[b : b + 1])
                    _raise_base(grads[shard], base[shard], sums[shard], b, row)
                    total = sums[shard, b] + exponentials(row, base[shard, b])
                    valid[shard] = begin
                sums[shard, b] = total
            if learns:
                gemm(grads[shard, :batch], some, weights[begin:end], 1.0, begin > first)


@called()
def _place(logits, shard, shards, begin, keeps):
    """Returns the index of the chunk from class `begin` on: its own kept slot, or the shard's."""
    kept = np.intp(shards + begin // CHUNK)
    return kept if keeps and kept < logits.shape[0] else np.intp(shard)


@called(error_model="numpy")
def _raise_base(grads, base, sums, b, logits):
    """Raises the base of row b to the largest logit or log of the sum so far, and rescales its sums."""
    before = base[b]
    base[b] = max(before + math.log(sums[b]), logits.max())
    scale = math.exp(before - base[b])
    sums[b] *= scale
    for d in range(grads.shape[1]):
        grads[b, d] *= scale


@called(error_model="numpy", fastmath={"reassoc", "contract"})
def mean(logits):
    """Returns the mean of a non-empty contiguous vector."""
    total = ZERO
    for j in range(logits.size):
        total += logits[j]
    return total / logits.dtype.type(logits.size)


@called(error_model="numpy", fastmath={"reassoc", "contract"})
def exponentials(logits, base):
    """Turns each logit of a contiguous vector into exp(logit - base); returns their sum."""
    total = ZERO
    for j in range(logits.size):
        logits[j] = exp(logits[j] - base)
        total += logits[j]
    return total


@called()
def chunk(logits, weights, biases, begin, end, hidden):
    """Writes the logits (B, end - begin) of the classes begin:end."""
    gemm(logits, hidden, weights[begin:end].T, 1.0, 0.0)
    if biases is not None:
        for b in range(logits.shape[0]):
            for j in range(end - begin):
                logits[b, j] += biases[begin + j]


@called(error_model="numpy")
def count(base, sums, b, logits, new):
    """Adds the exponentials of some logits to row b's sum.

    The base is the largest logit of the row's first chunk, and changes only when a sum overflows. No precision is lost before
    that, and most chunks need no search for their maximum.
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
    """Returns the sum of exp(logit - base) over a non-empty contiguous vector."""
    total = ZERO
    for j in range(logits.size):
        total += exp(logits[j] - base)
    return total


@launched(error_model="numpy")
def normalise(norm, base, sums, classes):
    """Writes norm from the shards' base and sums; turns sums into their logs, base included."""
    for b in range(norm.size):
        most = -np.inf
        for shard in range(base.shape[0]):
            first, last = blas.shard_part(shard, base.shape[0], classes)
            if first < last:
                sums[shard, b] = base[shard, b] + math.log(sums[shard, b])
                most = max(most, sums[shard, b])
        total = 0.0
        for shard in range(base.shape[0]):
            first, last = blas.shard_part(shard, base.shape[0], classes)
            if first < last:
                total += math.exp(sums[shard, b] - most)
        norm[b] = most + math.log(total)


@launched(parallel=True, error_model="numpy")
def _gather(grad, grads, scales, base, weights, hidden, target, norm, weight, threads):
    """Writes scales, and grad as the sum over shards; then writes the hidden vectors times the scales to grads."""
    size = -(-grad.shape[0] // threads)
    for thread in numba.prange(threads):
        for b in range(thread * size, min((thread + 1) * size, grad.shape[0])):
            one = weighed(base.dtype.type(1), weight, b)
            for d in range(grad.shape[1]):
                grad[b, d] = -one * weights[target[b], d]
            for shard in range(base.shape[0]):
                first, last = blas.shard_part(shard, base.shape[0], weights.shape[0])
                if first < last:
                    scale = one * exp(base[shard, b] - norm[b])
                    scales[shard, b] = scale
                    for d in range(grad.shape[1]):
                        grad[b, d] += scale * grads[shard, b, d]
                        grads[shard, b, d] = scale * hidden[b, d]


@launched(parallel=True, error_model="numpy")
def _learn(
    weights, biases, squares, bias_squares, logits, scaled, pulls, bias_pulls, base, scales, valid, hidden, target, weight,
    rate,
):  # fmt: skip
    """Second pass: updates the weights."""
    batch = hidden.shape[0]
    for shard in numba.prange(base.shape[0]):
        first, last = blas.shard_part(shard, base.shape[0], weights.shape[0])
        for begin in range(first, last, CHUNK):
            end, at = min(begin + CHUNK, last), _place(logits, shard, base.shape[0], begin, True)
            some = logits[at, :batch, : end - begin]
            if at == shard or begin < valid[shard]:
                chunk(some, weights, biases, begin, end, hidden)
                for b in range(batch):
                    exponentials(logits[at, b, : end - begin], base[shard, b])
            gemm(pulls[shard, : end - begin], some.T, scaled[shard, :batch], 1.0, 0.0)
            _pull_biases(bias_pulls[shard], biases, some, scales[shard])
            _pull_targets(pulls[shard], bias_pulls[shard], biases, begin, end, hidden, target, weight)
            move_by(weights, biases, squares, bias_squares, begin, end, pulls[shard], bias_pulls[shard], rate)


@called()
def _pull_biases(out, biases, exponentials, scales):
    """out[j] = the sum of scales[b] * exponentials[b, j] over b, if there are biases."""
    if biases is not None:
        out[:] = 0
        for b in range(exponentials.shape[0]):
            for j in range(exponentials.shape[1]):
                out[j] += scales[b] * exponentials[b, j]


@called()
def _pull_targets(pulls, bias_pulls, biases, begin, end, hidden, target, weight):
    """Subtracts the targets' terms for classes begin:end from the gradients of their rows."""
    for b in range(hidden.shape[0]):
        if begin <= target[b] < end:
            one = weighed(pulls.dtype.type(1), weight, b)
            for d in range(hidden.shape[1]):
                pulls[target[b] - begin, d] -= one * hidden[b, d]
            if biases is not None:
                bias_pulls[target[b] - begin] -= one


@called(error_model="numpy")
def probabilities(logits, norm):
    """Turns each logit of a contiguous vector into exp(logit - norm)."""
    for j in range(logits.size):
        logits[j] = exp(logits[j] - norm)


@called()
def weigh(misses, weight, b):
    """Multiplies a contiguous vector by the weight of example b."""
    if weight is not None:
        for j in range(misses.size):
            misses[j] *= weight[b]


@launched(parallel=True)
def _search(heaps, scores, logits, base, sums, weights, biases, hidden, out_first, out_last, left_out):
    """Writes the best of every shard, as a heap, and its base and sums."""
    batch = hidden.shape[0]
    for shard in numba.prange(base.shape[0]):
        first, last = blas.shard_part(shard, base.shape[0], weights.shape[0])
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            chunk(logits[shard, :batch, : end - begin], weights, biases, begin, end, hidden)
            for b in range(batch):
                skip = seek(left_out, out_first[b], out_last[b], begin)
                for j in range(end - begin):
                    if skip < out_last[b] and left_out[skip] == begin + j:
                        skip += 1
                    else:
                        topk.push(heaps[shard, b], scores[shard, b], begin + j, logits[shard, b, j])
                count(base[shard], sums[shard], b, logits[shard, b, : end - begin], begin == first)
