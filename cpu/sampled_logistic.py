"""One logistic regression per class: the target against negatives that are drawn once per batch and shared by its rows.

    loss = -positive log p(yes | target) - sum over the negatives of log p(no | negative)

A negative that equals the row's target is skipped; the others count without a correction. So with few negatives among many
classes the probabilities come out too high. gBCE corrects this by the factor `positive` of the target, see `calibrated` (Petrov
and Macdonald 2023, "gSASRec: Reducing Overconfidence in Sequential Recommendation Trained with Negative Sampling",
arXiv:2308.07192).

With S negatives of its own for each of B rows a step would visit B (S + 1) rows of weights, one example each. With shared ones
it takes as many operations, but visits S + B rows and is matrix products: a 170th of the traffic at B = 512 and S = 256.
"""

from typing import Any

import numba

from cpu.output.negatives import ROWS, Work, dot, gather, move, pull_target
from cpu.runtime.compiled import Array, called, launched
from cpu.softmax import weigh
from cpu.tree.logistic_visit import weighed
from cpu.vectors.activation import miss_and_loss
from cpu.vectors.blas import gemm


def calibrated(draws: int, classes: int, calibration: float) -> float:
    """beta = alpha (t (1 - 1 / alpha) + 1 / alpha) of gBCE, where a class is a negative with probability alpha.

    draws        per batch: with replacement, uniform over the classes, so alpha = 1 - (1 - 1 / V)^draws; for few draws of
                 many classes this is the paper's sampling rate
    calibration  t: 0: the plain binary cross-entropy; 1: the probabilities obtained with all classes as negatives
    """
    alpha = 1.0 if draws >= classes else 1 - (1 - 1 / classes) ** draws
    return 1 - calibration * (1 - alpha)


def learn(
    grad: Array, loss: Array, learned: Any, work: Work, count: int, hidden: Array, target: Array, weight: Array | None,
    rate: float, positive: float,
) -> Array:  # fmt: skip
    """Does `learn` of cpu/sampled_softmax.py with this loss; positive: factor of the target's term."""
    work.lower[:count], work.score[: target.size] = 0, 0
    met = gather(work, learned, count, target)
    given = met.score, work.logits, met.picked, met.ids, work.lower, hidden, target, weight, loss.dtype.type(positive)
    _learn(grad, loss, met.own, met.own_pulls, *given)
    if rate:
        move(learned, work, met, hidden, target, rate)
    return met.ids


@launched(parallel=True)
def _learn(grad, loss, own, own_pulls, score, logits, picked, ids, lower, hidden, target, weight, positive):
    """Writes loss, grad, the logits' gradients, and the gradients of the targets' weights to `own`; all weighted."""
    count = ids.size
    for block in numba.prange(-(-loss.size // ROWS)):
        first, last = block * ROWS, min((block + 1) * ROWS, loss.size)
        gemm(logits[first:last, :count], hidden[first:last], picked.T, 1.0, 0.0)
        for b in range(first, last):
            row = logits[b, :count]
            miss, cost = miss_and_loss(dot(own[b], hidden[b]) - score[b], 1)
            loss[b] = weighed(positive * cost + _refuse(row, ids, lower, target[b]), weight, b)
            if grad.size:
                own_pulls[b] = weighed(-positive * miss, weight, b)
                weigh(row, weight, b)
                pull_target(grad[b], own[b], hidden[b], own_pulls[b])
        if grad.size:
            gemm(grad[first:last], logits[first:last, :count], picked, 1.0, 1.0)


@called(error_model="numpy", fastmath={"reassoc", "contract"})
def _refuse(row, ids, lower, target):
    """Turns logits into their gradients, p(yes), or 0 at the target; returns the sum of the losses."""
    loss = row.dtype.type(0)
    for j in range(row.size):
        miss, cost = miss_and_loss(row[j] - lower[j], 0)
        other = ids[j] != target
        loss += cost if other else row.dtype.type(0)
        row[j] = -miss if other else row.dtype.type(0)
    return loss
