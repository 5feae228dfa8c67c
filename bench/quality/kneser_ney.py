"""Interpolated modified Kneser-Ney smoothing of n-grams: a language model without a neural net.

Chen and Goodman 1999, "An Empirical Study of Smoothing Techniques for Language Modeling", section 4.2 (discounts of their
equation 26), with the lowest order interpolated with the uniform distribution.
"""

from typing import NamedTuple

import numpy as np

FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small to estimate them


class Order(NamedTuple):
    """N-grams of one length: a context of k - 1 words and the word after it. Keys are sorted for look-up.

    contexts   keys of the contexts: number of the context without its first word, times base, plus that word
    grams      keys of the n-grams: number of the context, times base, plus the last word
    counts     of the n-grams: occurrences (highest order), or distinct words before them (other orders)
    total      sum of counts of each context
    left       of each context: the part of the total that discounts take, the weight of the order below
    discounts  of counts 0, 1, 2, and 3 or more
    """

    contexts: np.ndarray
    grams: np.ndarray
    counts: np.ndarray
    total: np.ndarray
    left: np.ndarray
    discounts: np.ndarray


class KneserNey:
    """A distribution over V words after contexts of n - 1 words.

    windows  (T, n) whole numbers: for every word of a text the n - 1 words before it, and itself. V stands for words before the
             beginning of the text, and is never the last of a window
    words    V
    """

    def __init__(self, windows: np.ndarray, words: int):
        self.words, self.base = words, words + 1
        n = windows.shape[1]
        contexts, number = [np.zeros(1, np.int64)], np.zeros(len(windows), np.int64)
        for k in range(1, n):
            keys, number = np.unique(number * self.base + windows[:, n - 1 - k], return_inverse=True)
            contexts.append(keys)
        grams, counts = np.unique(number * self.base + windows[:, -1], return_counts=True)
        orders = [_order(contexts[-1], grams, counts, self.base)]
        for k in range(n - 1, 0, -1):
            context, word = np.divmod(orders[-1].grams, self.base)
            shorter = orders[-1].contexts[context] // self.base
            grams, counts = np.unique(shorter * self.base + word, return_counts=True)
            orders.append(_order(contexts[k - 1], grams, counts, self.base))
        self.orders = orders[::-1]

    @property
    def size(self) -> int:
        """The number of n-grams of all lengths."""
        return sum(len(order.grams) for order in self.orders)

    def probabilities(self, windows: np.ndarray) -> np.ndarray:
        """Returns p(last word | the words before it) of each window (M, n), (M,) float64."""
        n, word = windows.shape[1], windows[:, -1]
        p = np.full(len(windows), 1 / self.words)
        context, known = np.zeros(len(windows), np.int64), np.ones(len(windows), bool)
        for k, order in enumerate(self.orders):
            if k:
                context, there = _places(order.contexts, context * self.base + windows[:, n - 1 - k])
                known &= there
            gram, there = _places(order.grams, context * self.base + word)
            count = np.where(there & known, order.counts[gram], 0)
            kept = np.maximum(count - order.discounts[np.minimum(count, 3)], 0)
            p = np.where(known, (kept + order.left[context] * p) / order.total[context], p)
        return p


def _order(contexts: np.ndarray, grams: np.ndarray, counts: np.ndarray, base: int) -> Order:
    discounts = _discounts(counts)
    context, size = grams // base, len(contexts)
    total = np.bincount(context, counts, size)
    left = np.bincount(context, discounts[np.minimum(counts, 3)], size)
    return Order(contexts, grams, counts, total, left, discounts)


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Returns the discounts of counts 0, 1, 2, and 3 or more, from the numbers of n-grams that occur one to four times."""
    _, *times = np.bincount(np.minimum(counts, 5), minlength=6)[:5].tolist()
    if not all(times):
        return np.array([0.0, *FALLBACK])
    share = times[0] / (times[0] + 2 * times[1])
    values = [k - (k + 1) * share * times[k] / times[k - 1] for k in (1, 2, 3)]
    return np.array([0.0, *(np.clip(value, 0, k) for k, value in enumerate(values, 1))])


def _places(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the index of each key, 0 for missing ones, and a mask of those present."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there = keys[at] == wanted
    return np.where(there, at, 0), there
