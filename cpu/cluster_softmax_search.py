"""What classes are likely under a head with a softmax in each cluster: the best of them, or the probabilities of all.

No class is likelier than its cluster. So clusters are looked at in falling order of their probability, until one is less likely
than the worst of the k best classes.
"""

import math
from typing import Any

import numba
import numpy as np

from cpu import excluded, topk
from cpu.array import Array
from cpu.cluster_softmax import Plan
from cpu.compiled import called, launched
from cpu.excluded import Excluded
from cpu.head_search import offer
from cpu.heap import drop, push
from cpu.softmax import chunk, sum_exp

TOGETHER = 64  # examples of a matrix product


def best(
    ids: Array, log_probs: Array, learned: Any, plan: Plan, slots: Array, alone: Array, hidden: Array, without: Excluded
) -> None:
    """Write the k most likely classes of each row, most likely first, equals by rising class; exact.

    Arguments as of cpu/head_search.py, but that rows are those of the classes in clusters.
    """
    rows = learned.rows, learned.biases, plan.begins, plan.classes
    _best(ids, log_probs, *rows, slots, alone, hidden, *without, numba.get_num_threads())


def scores(out: Array, learned: Any, plan: Plan, hidden: Array) -> None:
    """out[b, v] = log p(v | its cluster, hidden[b]), 0 for a class that is in none; out (B, V)."""
    out[:, plan.cluster < 0] = 0
    _scores(out, learned.rows, learned.biases, plan.begins, plan.classes, hidden)


@launched(parallel=True)
def _best(ids, log_probs, rows, biases, begins, classes, slots, alone, hidden, out_first, out_last, left_out, threads):
    for thread in numba.prange(threads):
        keys, items = np.empty(1024), np.empty(1024, np.int32)
        logits = np.empty((1, _most(begins)), hidden.dtype)
        for b in range(thread, hidden.shape[0], threads):
            topk.clear(ids[b], log_probs[b])
            first, last = out_first[b], out_last[b]
            offer(ids[b], log_probs[b], slots[b], alone, left_out, first, last)
            size = 0
            for k in range(begins.size - 1):
                size, keys, items = push(keys, items, size, slots[b, alone.size + k], k)
            while size and not keys[0] < log_probs[b, 0]:
                key, k = keys[0], items[0]
                size = drop(keys, items, size)
                count = begins[k + 1] - begins[k]
                chunk(logits[:, :count], rows, biases, begins[k], begins[k + 1], hidden[b : b + 1])
                given = key - _norm(logits[0, :count])
                for j in range(count):
                    class_ = classes[begins[k] + j]
                    if not excluded.holds(left_out, first, last, class_):
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
    """The most classes of a cluster."""
    most = 0
    for k in range(begins.size - 1):
        most = max(most, begins[k + 1] - begins[k])
    return most


@called(error_model="numpy")
def _norm(logits):
    """The logarithm of the sum of the exponentials of a contiguous vector."""
    base = logits.max()
    return base + math.log(sum_exp(logits, base))
