"""Logistic regression over sparse examples, by coordinate descent in its dual: what a node of a sparse label tree learns.

It minimises |w|^2 / 2 + sum of c_i log(1 + e^-(y_i w . x_i)), y_i = 1 or -1, where the last of w is the bias, as if every
example had one more feature, 1. The dual has a number 0 < a_i < c_i an example, and w = sum of a_i y_i x_i. One coordinate
at a time is set to where the dual is least; with u = log(a / (c - a)) that is where

    slope(u) = |x_i|^2 (a(u) - a_i) + y_i w . x_i + u = 0,    a(u) = c_i logistic(u)

which rises everywhere, by at least 1: Newton's steps within a bracket find it, most often at once. Examples are visited in an
order drawn anew each pass. At the solution u_i = -y_i w . x_i, so the largest |slope| met in a pass says how far it is.

Yu, Huang and Lin 2011, "Dual coordinate descent methods for logistic regression and maximum entropy models"; Hsieh et al. 2008,
"A dual coordinate descent method for large-scale linear SVM".
"""

import numpy as np

from cpu.activation import logistic
from cpu.compiled import called, launched
from cpu.splitmix import GOLDEN, mix

STEPS = 30  # of Newton or halving at most: float32 can tell no more apart


@launched(error_model="numpy")
def solve(w, row_at, ids, values, squares, positive, bound, tolerance, passes, seed):
    """Write w (F + 1,) float64 of n examples; returns how many passes it took.

    row_at    (n + 1,), ids, values  the examples' features, CSR; ids below F
    squares   (n,) float32 |x_i|^2, with the bias's 1
    positive  (n,) bool: y_i = 1
    bound     (n,) float32 c_i; an example with 0 is left out
    tolerance it ends after a pass in which no |slope| was larger, or after so many `passes`; at least 1e-4: odds are float32
    seed      uint64: of the order
    """
    n = squares.size
    w[:] = 0
    alpha, odds = np.zeros(n), np.full(n, np.float32(-5))
    order = np.arange(n)
    close = np.float32(tolerance / 10)  # how near a coordinate is brought to where its slope is 0
    for turn in range(passes):
        _shuffle(order, seed + np.uint64(turn) * np.uint64(n))
        far = 0.0
        for i in order:
            if bound[i] <= 0:
                continue
            score = w[w.size - 1]
            for j in range(row_at[i], row_at[i + 1]):
                score += w[ids[j]] * values[j]
            margin = np.float32(score if positive[i] else -score)
            slope = margin + odds[i] if turn else np.float32(np.inf)
            far = max(far, abs(slope))
            if abs(slope) <= tolerance:
                continue
            odds[i], now = _least(odds[i], np.float32(alpha[i]), margin, squares[i], bound[i], close)
            change = now - alpha[i] if positive[i] else alpha[i] - now
            alpha[i] = now
            w[w.size - 1] += change
            for j in range(row_at[i], row_at[i + 1]):
                w[ids[j]] += change * values[j]
        if far <= tolerance:
            return turn + 1
    return passes


@called(error_model="numpy")
def _least(odds, alpha, margin, square, bound, close):
    """The u at which the dual is least along a coordinate, and a(u)."""
    low, high = square * (alpha - bound) - margin, square * alpha - margin
    odds = min(max(odds, low), high)
    for _ in range(STEPS):
        share = logistic(odds)
        slope = square * (bound * share - alpha) + margin + odds
        if abs(slope) <= close:
            break
        if slope > 0:
            high = odds
        else:
            low = odds
        odds -= slope / (1 + square * bound * share * (1 - share))
        if not low < odds < high:
            odds = (low + high) / 2
    return odds, bound * logistic(odds)


@called()
def _shuffle(order, seed):
    """An order drawn from a seed (Fisher and Yates)."""
    for i in range(order.size - 1, 0, -1):
        j = np.int64(mix(seed + np.uint64(i) * GOLDEN) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
