"""Hierarchical softmax: nodes (V - 1, D), one logistic regression at each inner node of a binary tree over V classes.

Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model".
"""

import numba

from cpu import path

TOGETHER = 16  # examples that climb together


def workspace(batch, width, depth, dtype):
    """Scratch for calls with up to `batch` rows and paths of up to `depth` nodes."""
    return path.workspace(batch, width, depth, dtype)


def step(grad, loss, nodes, work, tree, hidden, target, rate, mode):
    _climb(work.entries, work.cuts, tree.leaf_up, tree.node_up, tree.shard, target, numba.get_num_threads())
    path.learn(grad, loss, nodes, work, hidden, rate, mode)


@numba.njit(parallel=True, cache=True, nogil=True)
def _climb(entries, cuts, leaf_up, node_up, shard, target, chunks):
    """Write each target's path, leaf first, and where its shards begin.

    Climbing waits for one pointer after another, so a few examples climb together, step by step.
    """
    size = -(-target.size // chunks)
    for chunk in numba.prange(chunks):
        end = min((chunk + 1) * size, target.size)
        for first in range(chunk * size, end, TOGETHER):
            last = min(first + TOGETHER, end)
            for b in range(first, last):
                cuts[b] = 0
                entries[b, 0] = leaf_up[target[b]]
            level = 0
            climbing = True
            while climbing:
                climbing = False
                for b in range(first, last):
                    up = entries[b, level]
                    if up >= 0:
                        climbing = True
                        cuts[b, shard[up >> 1] + 1] += 1
                        up = node_up[up >> 1]
                    entries[b, level + 1] = up
                level += 1
            for b in range(first, last):
                for s in range(1, cuts.shape[1]):
                    cuts[b, s] += cuts[b, s - 1]
