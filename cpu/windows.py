"""Windows of nearby words: of each word of a text, those within its reach."""

from typing import Any

import numpy as np

from cpu.array import Array
from cpu.compiled import called, launched


def windows(ids: Array, sentence_at: Array, keep: Array, reach: Array) -> tuple[Any, ...]:
    """The words kept, and the other words kept around each, in order: word k has context[at[k] : at[k + 1]].

    ids (n,) int32; keep (n,) bool; reach (n,) whole numbers: most words on each side
    sentence_at  (S + 1,) int64 from 0 to n: a window ends where its sentence does, and steps over words that are not kept

    Returns context and words, int32, at (K + 1,) int64, and of each token and of the end its place among those kept, (n + 1,)
    int64.
    """
    kept_at = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(keep, out=kept_at[1:])
    words, begins = ids[keep], kept_at[sentence_at]
    at = np.zeros(len(words) + 1, np.int64)
    reach = reach[keep]
    _measure(at, begins, reach)
    context = np.empty(at[-1], np.int32)
    _fill(context, words, begins, reach)
    return context, words, at, kept_at


@launched()
def _measure(at, begins, reach):
    """Where the window of each word begins."""
    for s in range(begins.size - 1):
        for k in range(begins[s], begins[s + 1]):
            low, high = _ends(k, begins[s], begins[s + 1], reach)
            at[k + 1] = at[k] + high - low - 1


@launched()
def _fill(context, words, begins, reach):
    """Write the words of each window, without its own."""
    n = 0
    for s in range(begins.size - 1):
        for k in range(begins[s], begins[s + 1]):
            low, high = _ends(k, begins[s], begins[s + 1], reach)
            for other in range(low, high):
                if other != k:
                    context[n] = words[other]
                    n += 1


@called()
def _ends(k, begin, end, reach):
    """The first word of a window, and the first one after it."""
    return max(k - reach[k], begin), min(k + reach[k] + 1, end)
