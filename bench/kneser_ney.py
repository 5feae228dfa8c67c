"""Interpolated modified Kneser-Ney smoothing of n-grams in NumPy: what a language model without any net reaches.

Chen and Goodman 1999, "An Empirical Study of Smoothing Techniques for Language Modeling", section 4.2 (discounts of their
equation 26), with the lowest order interpolated with the uniform distribution.
"""

from typing import NamedTuple

import numpy as np

FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small to estimate them


class Order(NamedTuple):
    """N-grams of one length k: a context h of k - 1 words and the word w after it. Keys are sorted, so they are looked up.

    contexts  keys of the contexts: number of the context without its first word, times base, plus that word
    grams     keys of the n-grams: number of the context, times base, plus w
    counts    of the n-grams: how often (of the highest order), or after how many different words (of the others)
    total     of each context: the sum of its counts
    left      of each context: what discounts take of the total, the weight of the order below
    discounts of counts 1, 2, and 3 or more
    """

    contexts: np.ndarray
    grams: np.ndarray
    counts: np.ndarray
    total: np.ndarray
    left: np.ndarray
    discounts: np.ndarray


class KneserNey:
    """A distribution over V words after contexts of n - 1 words.

    windows  (T, n) whole numbers: of every word of a text the n - 1 words before it, and itself. V stands for words before the
             beginning of a text, and is never the last of a window
    words    V
    """

    def __init__(self, windows: np.ndarray, words: int):
        self.words, self.base = words, words + 1
        n = windows.shape[1]
        contexts, found = [np.zeros(1, np.int64)], [np.zeros(len(windows), np.int64)]
        for k in range(1, n):
            keys, numbers = np.unique(found[-1] * self.base + windows[:, n - 1 - k], return_inverse=True)
            contexts.append(keys)
            found.append(numbers)
        grams, counts = np.unique(found[-1] * self.base + windows[:, -1], return_counts=True)
        orders = [_order(contexts[-1], grams, counts, self.base)]
        for k in range(n - 1, 0, -1):
            context, word = np.divmod(orders[-1].grams, self.base)
            shorter = orders[-1].contexts[context] // self.base
            grams, counts = np.unique(shorter * self.base + word, return_counts=True)
            orders.append(_order(contexts[k - 1], grams, counts, self.base))
        self.orders = orders[::-1]

    @property
    def size(self) -> int:
        """How many n-grams there are, of all lengths."""
        return sum(len(order.grams) for order in self.orders)

    def probabilities(self, windows: np.ndarray) -> np.ndarray:
        """p(last word | the words before it) of each window (M, n), (M,) float64."""
        n, word = windows.shape[1], windows[:, -1]
        p = np.full(len(windows), 1 / self.words)
        context, known = np.zeros(len(windows), np.int64), np.ones(len(windows), bool)
        for k, order in enumerate(self.orders):
            if k:
                context, there = _found(order.contexts, context * self.base + windows[:, n - 1 - k])
                known &= there
            gram, there = _found(order.grams, context * self.base + word)
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
    """Of counts 0 (nothing), 1, 2, and 3 or more; from how many n-grams are met once, twice, three and four times."""
    _, *met = np.bincount(np.minimum(counts, 5), minlength=6)[:5].tolist()
    if not all(met):
        return np.array([0.0, *FALLBACK])
    share = met[0] / (met[0] + 2 * met[1])
    found = [k - (k + 1) * share * met[k] / met[k - 1] for k in (1, 2, 3)]
    return np.array([0.0, *(np.clip(value, 0, k) for k, value in enumerate(found, 1))])


def _found(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of keys, 0 where they are not there, and whether they are."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there = keys[at] == wanted
    return np.where(there, at, 0), there
