"""Plain float64 NumPy for tests: logistic regression along lists of rows, one example after the other."""

import numpy as np


def learn(rows, hidden, lists, rate):
    """Take example b through the (row, turn) pairs of lists[b]; returns the gradient and the loss, moves `rows`."""
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    for b, h in enumerate(hidden):
        for row, turn in lists[b]:
            score = rows[row] @ h
            miss = turn - 1 / (1 + np.exp(-score))
            loss[b] += np.logaddexp(0, -score if turn else score)
            grad[b] -= miss * rows[row]
            rows[row] += rate * miss * h
    return grad, loss
