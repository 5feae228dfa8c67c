"""The softmax over the target of each row and a few negatives that are drawn once per batch and shared by its rows.

Every class v is a negative with a known probability p(v), see cpu/output/negatives.py. Logits are lowered by log p (Jean et al.
2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2). A negative that equals the row's
target is skipped. So the gradient approaches that of the full softmax, and the weights learn its logits. If every class is
taken, it is the full softmax.
"""

import math
from typing import Any

import numba
import numpy as np

from cpu.output.negatives import ROWS, Work, dot, gather, move, pull_target
from cpu.output.negatives import draw as draw
from cpu.output.negatives import log_uniform as log_uniform
from cpu.output.negatives import uniform as uniform
from cpu.output.negatives import unigram as unigram
from cpu.output.negatives import workspace as workspace
from cpu.runtime.compiled import Array, called, launched
from cpu.softmax import probabilities, sum_exp, weigh
from cpu.tree.logistic_visit import weighed
from cpu.vectors.blas import gemm


def learn(
    grad: Array, loss: Array, learned: Any, work: Work, count: int, hidden: Array, target: Array, weight: Array | None,
    rate: float,
) -> Array:  # fmt: skip
    """See the contract. The softmax of the loss is over the target and the negatives, with lowered logits.

    At a rate of 0 nothing is updated, and grad may be (0, D): then only the loss is computed.
    """
    met = gather(work, learned, count, target)
    given = met.score, work.logits, met.picked, met.ids, work.lower, hidden, target, weight
    _learn(grad, loss, met.own, met.own_pulls, *given)
    if rate:
        move(learned, work, met, hidden, target, rate)
    return met.ids


@launched(parallel=True)
def _learn(grad, loss, own, own_pulls, score, logits, picked, ids, lower, hidden, target, weight):
    """Writes loss, grad, probabilities to logits, and the gradients of the targets' weights to `own`; all weighted."""
    count = ids.size
    for block in numba.prange(-(-loss.size // ROWS)):
        first, last = block * ROWS, min((block + 1) * ROWS, loss.size)
        gemm(logits[first:last, :count], hidden[first:last], picked.T, 1.0, 0.0)
        for b in range(first, last):
            row = logits[b, :count]
            _lower(row, ids, lower, target[b])
            score[b] = dot(own[b], hidden[b]) - score[b]
            norm = _norm(row, score[b])
            loss[b] = norm - score[b]
            if grad.size:
                probabilities(row, norm)
                own_pulls[b] = weighed(np.expm1(-loss[b]), weight, b)
                weigh(row, weight, b)
                pull_target(grad[b], own[b], hidden[b], own_pulls[b])
            loss[b] = weighed(loss[b], weight, b)
        if grad.size:
            gemm(grad[first:last], logits[first:last, :count], picked, 1.0, 1.0)


@called()
def _lower(row, ids, lower, target):
    for j in range(row.size):
        row[j] = -np.inf if ids[j] == target else row[j] - lower[j]


@called(error_model="numpy")
def _norm(row, score):
    """Returns log(exp(score) + sum of exp(row))."""
    base = score
    total = 1 + sum_exp(row, base)
    if math.isinf(total):
        base = row.max()
        total = math.exp(score - base) + sum_exp(row, base)
    return row.dtype.type(base + math.log(total))
