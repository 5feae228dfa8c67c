"""Plain float64 NumPy for tests: logistic regression along lists of rows, one example after the other."""

import numpy as np

from hybrid.contract import Learned, Rule
from tests.support.moved_rows import move


def learn(rows, hidden, lists, rate):
    """Plain SGD: take example b through the (row, turn) pairs of lists[b]; returns the gradient and the loss, moves `rows`."""
    return learn_by(Learned(rows), hidden, lists, Rule(rate))


def learn_by(learned, hidden, lists, rule, weight=None):
    """The same by any rule, of examples with weights."""
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    weight = np.ones(len(hidden)) if weight is None else weight
    biases = np.zeros(len(learned.rows)) if learned.biases is None else learned.biases
    for b, h in enumerate(hidden):
        for row, turn in lists[b]:
            score = learned.rows[row] @ h + biases[row]
            miss = weight[b] * (turn - 1 / (1 + np.exp(-score)))
            loss[b] += weight[b] * np.logaddexp(0, -score if turn else score)
            grad[b] -= miss * learned.rows[row]
            move(learned, row, -miss * h, -miss, rule)
    return grad, loss
