"""The log-probabilities of all classes, (B, V): for rankings and metrics, not for training.

Every matrix product multiplies a chunk of the table with all hidden vectors and writes into `out`. Further scratch is a few
numbers per class and thread. Results do not depend on the thread count.
"""

from typing import Any

import numba
import numpy as np

from cpu.runtime.compiled import Array, launched
from cpu.softmax import chunk, count, normalise
from cpu.vectors import blas
from cpu.vectors.activation import exp, log1p
from cpu.vectors.blas import CHUNK, SHARDS


def softmax(out: Array, learned: Any, hidden: Array) -> None:
    """out[b, v] = log p(v | hidden[b]) of a softmax over the rows (V, D); out (B, V), hidden (B, D)."""
    base, sums = np.empty((2, SHARDS, len(hidden)), out.dtype)
    norm = np.empty(len(hidden), out.dtype)
    _logits(out, base, sums, learned.rows, learned.biases, hidden)
    normalise(norm, base, sums, learned.rows.shape[0])
    _lower(out, norm, numba.get_num_threads())


def tree(out: Array, learned: Any, tree: Any, hidden: Array) -> None:
    """out[b, v] = log p(v | hidden[b]) of a hierarchical softmax; out (B, V), rows: the nodes (V - 1, D), hidden (B, D)."""
    products(out, learned.rows, learned.biases, hidden)
    _descend(out, tree.children, numba.get_num_threads())


@launched(parallel=True)
def _logits(out, base, sums, weights, biases, hidden):
    """Writes the logits, and base and sums of every shard."""
    for shard in numba.prange(base.shape[0]):
        first, last = blas.shard_part(shard, base.shape[0], weights.shape[0])
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            chunk(out[:, begin:end], weights, biases, begin, end, hidden)
            for b in range(hidden.shape[0]):
                count(base[shard], sums[shard], b, out[b, begin:end], begin == first)


@launched(parallel=True)
def _lower(out, norm, threads):
    """out[b] -= norm[b]."""
    for thread in numba.prange(threads):
        for b in range(thread * norm.size // threads, (thread + 1) * norm.size // threads):
            for v in range(out.shape[1]):
                out[b, v] -= norm[b]


@launched(parallel=True)
def products(out, nodes, biases, hidden):
    """out[b, n] = hidden[b] . nodes[n] + biases[n], if there are biases; columns past the last node stay unchanged."""
    for number in numba.prange(-(-nodes.shape[0] // CHUNK)):
        begin, end = number * CHUNK, min((number + 1) * CHUNK, nodes.shape[0])
        chunk(out[:, begin:end], nodes, biases, begin, end, hidden)


@launched(parallel=True, error_model="numpy")
def _descend(out, children, threads):
    """Turns each row of `out` from the scores of the nodes into the log-probabilities of the classes.

    Nodes are numbered breadth first, so each node follows its ancestors. Path sums are float64, as in cpu/tree_softmax.py.
    """
    inner = children.shape[0]
    for thread in numba.prange(threads):
        scores, tails, way = np.empty(inner, out.dtype), np.empty(inner, out.dtype), np.zeros(inner)
        for b in range(thread * out.shape[0] // threads, (thread + 1) * out.shape[0] // threads):
            scores[:] = out[b, :inner]
            for node in range(inner):
                tails[node] = log1p(exp(-abs(scores[node])))
            for node in range(inner):
                score = np.float64(scores[node])
                for turn in range(2):
                    against = -score if turn else score
                    log_prob = way[node] - (max(against, 0.0) + tails[node])  # minus softplus(against)
                    child = children[node, turn]
                    if child < 0:
                        out[b, ~child] = log_prob
                    else:
                        way[child] = log_prob
