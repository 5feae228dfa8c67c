"""A softmax in each of K clusters of classes, over the cluster's own rows: the probability of a class given its cluster.

The examples of a batch are sorted by their targets' clusters. For each cluster that occurs, matrix products compute the logits
of its examples and the gradient of their hidden vectors, and update its rows. One thread processes a whole cluster. A cluster
of more than LARGE classes uses the full softmax of cpu/softmax.py, which is itself parallel.

Goodman 2001, "Classes for fast maximum entropy training". With few clusters by frequency these are the tails of the adaptive
softmax of Grave et al. 2017, arXiv:1609.04309, without its projections.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import softmax
from cpu.output import topk
from cpu.output.rule import move_together, pull_biases
from cpu.output.topk import Excluded, drop, heap_push, is_excluded
from cpu.runtime.compiled import Array, called, launched
from cpu.softmax import chunk, probabilities, sum_exp, weigh
from cpu.vectors.blas import gemm

LARGE = 1024  # maximum number of classes in a cluster that one thread processes
TOGETHER = 64  # examples per matrix product of `scores`


class Plan(NamedTuple):
    """The assignment of rows to clusters.

    cluster  (V,) int32: the cluster of each class, -1 for a class in none
    row      (V,) int32: the row of each class in a cluster
    begins   (K + 1,) int64: cluster k has the rows begins[k] to begins[k + 1]
    classes  (R,) int32: the class of each row, ascending within a cluster
    """

    cluster: np.ndarray
    row: np.ndarray
    begins: np.ndarray
    classes: np.ndarray


class Work(NamedTuple):
    """Scratch of up to B rows, for clusters of up to L classes that are not large.

    full    of cpu/softmax.py, for large clusters; None if there are none
    logits  (B, L)            of the sorted examples; then d loss / d logit
    hidden  (B, D)            the sorted hidden vectors
    grads   (B, D)            their gradients
    pulls   (threads, L, D)   the gradient of the rows of the thread's cluster, unless they use plain SGD
    bias_pulls (threads, L)   the same for their biases
    """

    full: Any
    logits: np.ndarray
    hidden: np.ndarray
    grads: np.ndarray
    pulls: np.ndarray
    bias_pulls: np.ndarray


class _Order(NamedTuple):
    """The examples of a batch that have a cluster, sorted by cluster.

    examples  (M,) int64
    clusters  (J,) the clusters that occur, ascending
    at        (J + 1,) int64: cluster clusters[j] has the examples at[j] to at[j + 1]
    target    (M,) int64: the row of each example's target, within its cluster
    """

    examples: np.ndarray
    clusters: np.ndarray
    at: np.ndarray
    target: np.ndarray


def plan(cluster: Array) -> Plan:
    """Assigns rows to clusters; cluster (V,) int32, -1 for a class in none; none of 0 to K - 1 is empty."""
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.searchsorted(cluster[order], np.arange(cluster.max(initial=-1) + 1)))[1:]
    classes = np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32)
    row = np.full(cluster.size, -1, np.int32)
    row[classes] = np.arange(classes.size)
    return Plan(cluster, row, np.cumsum([0, *map(len, members)]), classes)


def workspace(batch: int, width: int, plan: Plan, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls with up to `batch` rows of `width` numbers."""
    sizes = np.diff(plan.begins)
    most = int(sizes[sizes <= LARGE].max(initial=0))
    full = softmax.workspace(batch, width, dtype) if (sizes > LARGE).any() else None
    hidden, grads = np.empty((2, batch, width), dtype)
    threads = numba.config.NUMBA_NUM_THREADS
    pulls, bias_pulls = np.empty((threads, most, width), dtype), np.empty((threads, most), dtype)
    return Work(full, np.empty((batch, most), dtype), hidden, grads, pulls, bias_pulls)


def step(
    grad: Array, loss: Array, learned: Any, work: Work, plan: Plan, hidden: Array, target: Array,
    weight: Array | None, rate: float,
) -> None:  # fmt: skip
    """Writes grad (B, D) = d loss / d hidden and loss (B,) in nats: 0 for an example whose target is in no cluster.

    Every row of a cluster that occurs is updated once, with the gradient summed over B.
    """
    order = _ordered(work, plan, hidden, target)
    weights = None if weight is None else weight[order.examples]
    losses = np.empty(order.examples.size, loss.dtype)
    spread = order.clusters, order.at, plan.begins
    given = learned.rows, learned.biases, work.hidden, order.target, weights
    _judge(losses, work.logits, work.grads, *spread, *given, LARGE, True, numba.get_num_threads())
    scratch = work.logits, work.pulls, work.bias_pulls, work.hidden
    _move(*learned, *scratch, *spread, learned.rows.dtype.type(rate), LARGE, numba.get_num_threads())
    for part, own, among in _large(order, plan):
        theirs = None if weights is None else weights[part]
        read = _rows(learned, own), work.full, work.hidden[part], among, theirs, rate
        softmax.step(work.grads[part], losses[part], *read)
    grad.fill(0)
    loss.fill(0)
    grad[order.examples], loss[order.examples] = work.grads[: order.examples.size], losses


def log_prob(out: Array, learned: Any, work: Work, plan: Plan, hidden: Array, target: Array) -> None:
    """out[b] = log p(target[b] | its cluster, hidden[b]); 0 for a target in no cluster."""
    order = _ordered(work, plan, hidden, target)
    losses = np.empty(order.examples.size, out.dtype)
    spread = order.clusters, order.at, plan.begins
    given = learned.rows, learned.biases, work.hidden, order.target, None
    _judge(losses, work.logits, work.grads, *spread, *given, LARGE, False, numba.get_num_threads())
    for part, own, among in _large(order, plan):
        softmax.log_prob(losses[part], _rows(learned, own), work.full, work.hidden[part], among)
        np.negative(losses[part], out=losses[part])
    out.fill(0)
    out[order.examples] = -losses


def best(
    ids: Array, log_probs: Array, learned: Any, plan: Plan, slots: Array, alone: Array, hidden: Array, without: Excluded
) -> None:
    """Writes the k most likely classes of each row, most likely first, ties in ascending order; exact.

    No class is likelier than its cluster. So clusters are searched in falling order of probability, until one is less likely
    than the worst of the k best classes. Arguments as of `best` in cpu/tree_softmax.py, and

    slots  (B, H + K) the log-probability of each slot of the head: H of classes alone, then one per cluster
    alone  (H,) int32, the classes with a slot of their own, ascending
    """
    rows = learned.rows, learned.biases, plan.begins, plan.classes
    _best(ids, log_probs, *rows, slots, alone, hidden, *without, numba.get_num_threads())


def scores(out: Array, learned: Any, plan: Plan, hidden: Array) -> None:
    """out[b, v] = log p(v | its cluster, hidden[b]), 0 for a class in none; out (B, V)."""
    out[:, plan.cluster < 0] = 0
    _scores(out, learned.rows, learned.biases, plan.begins, plan.classes, hidden)


def _ordered(work: Work, plan: Plan, hidden: Array, target: Array) -> _Order:
    """Sorts the examples by cluster; writes their hidden vectors."""
    cluster = plan.cluster[target]
    examples = np.argsort(cluster, kind="stable")
    examples = examples[np.count_nonzero(cluster < 0) :]
    clusters, first = np.unique(cluster[examples], return_index=True)
    np.take(hidden, examples, axis=0, out=work.hidden[: examples.size])
    among = plan.row[target[examples]] - plan.begins[cluster[examples]]
    return _Order(examples, clusters, np.append(first, examples.size), among)


def _large(order: _Order, plan: Plan) -> list[tuple[slice, slice, Array]]:
    """Returns, for each large cluster that occurs, its examples, its rows, and its targets' rows."""
    sizes = plan.begins[order.clusters + 1] - plan.begins[order.clusters]
    parts = []
    for j in np.flatnonzero(sizes > LARGE):
        part, k = slice(order.at[j], order.at[j + 1]), order.clusters[j]
        parts.append((part, slice(plan.begins[k], plan.begins[k + 1]), order.target[part].astype(np.int32)))
    return parts


def _rows(learned: Any, rows: slice) -> Any:
    """Returns views of the given rows and their state."""
    return learned._make(None if array is None else array[rows] for array in learned)


@launched(parallel=True)
def _judge(losses, logits, grads, clusters, at, begins, rows, biases, hidden, target, weight, large, learns, threads):
    """Writes the losses of examples in clusters that are not large; learns: also their errors and gradients."""
    for thread in numba.prange(threads):
        for j in range(thread, clusters.size, threads):
            first, last, begin, end = at[j], at[j + 1], begins[clusters[j]], begins[clusters[j] + 1]
            count = end - begin
            if count <= large:
                chunk(logits[first:last, :count], rows, biases, begin, end, hidden[first:last])
                for e in range(first, last):
                    losses[e] = _miss(logits[e, :count], target[e], weight, e)
                if learns:
                    gemm(grads[first:last], logits[first:last, :count], rows[begin:end], 1.0, 0.0)


@called(error_model="numpy")
def _miss(logits, target, weight, e):
    """Turns the logits of example e, a contiguous vector, into errors; returns its loss."""
    norm = _norm(logits)
    loss = norm - logits[target]
    probabilities(logits, norm)
    logits[target] -= 1
    weigh(logits, weight, e)
    if weight is None:
        return loss
    return loss * weight[e]


@called(error_model="numpy")
def _norm(logits):
    """Returns the log of the sum of exponentials of a contiguous vector."""
    base = logits.max()
    return base + math.log(sum_exp(logits, base))


@launched(parallel=True)
def _move(
    rows, biases, squares, bias_squares, misses, pulls, bias_pulls, hidden, clusters, at, begins, rate, large, threads,
):  # fmt: skip
    """Updates the rows of all clusters that occur and are not large."""
    for thread in numba.prange(threads):
        for j in range(thread, clusters.size, threads):
            first, last, begin, end = at[j], at[j + 1], begins[clusters[j]], begins[clusters[j] + 1]
            count = end - begin
            if count <= large:
                part = misses[first:last, :count]
                pull_biases(bias_pulls[thread, :count], biases, part)
                given = pulls[thread], bias_pulls[thread], part.T, hidden[first:last], rate
                move_together(rows, biases, squares, bias_squares, begin, end, *given)


@launched(parallel=True)
def _best(ids, log_probs, rows, biases, begins, classes, slots, alone, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        logits = np.empty((1, _most(begins)), hidden.dtype)
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            first, last = out_first[b], out_last[b]
            topk.offer(ids[b], log_probs[b], slots[b], alone, left_out, first, last)
            size = 0
            for k in range(begins.size - 1):
                size, keys, items = heap_push(keys, items, size, slots[b, alone.size + k], k)
            while size and not keys[0] < log_probs[b, 0]:
                key, k = keys[0], items[0]
                size = drop(keys, items, size)
                count = begins[k + 1] - begins[k]
                chunk(logits[:, :count], rows, biases, begins[k], begins[k + 1], hidden[b : b + 1])
                given = key - _norm(logits[0, :count])
                for j in range(count):
                    class_ = classes[begins[k] + j]
                    if not is_excluded(left_out, first, last, class_):
                        topk.push(ids[b], log_probs[b], class_, logits[0, j] + given)
            topk.sort(ids[b], log_probs[b])


@launched(parallel=True)
def _scores(out, rows, biases, begins, classes, hidden):
    for part in numba.prange(-(-hidden.shape[0] // TOGETHER)):
        first, last = part * TOGETHER, min((part + 1) * TOGETHER, hidden.shape[0])
        logits = np.empty((last - first, _most(begins)), hidden.dtype)
        for k in range(begins.size - 1):
            count = begins[k + 1] - begins[k]
            chunk(logits[:, :count], rows, biases, begins[k], begins[k + 1], hidden[first:last])
            for b in range(last - first):
                norm = _norm(logits[b, :count])
                for j in range(count):
                    out[first + b, classes[begins[k] + j]] = logits[b, j] - norm


@called()
def _most(begins):
    """Returns the number of classes of the largest cluster."""
    most = 0
    for k in range(begins.size - 1):
        most = max(most, begins[k + 1] - begins[k])
    return most
