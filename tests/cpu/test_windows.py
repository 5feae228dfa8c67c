"""Windows by hand; tests/hybrid/feeds/test_pairs.py holds them against the plain loop of word2vec.c."""

from itertools import pairwise

import numpy as np
import pytest

from cpu.words import windows


@pytest.mark.parametrize(
    "keep, reach, expected",
    [
        ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [[6], [5, 7], [6], [9], [8]]),
        ([1, 1, 1, 1, 1], [2, 1, 2, 3, 1], [[6, 7], [5, 7], [5, 6], [9], [8]]),
        ([1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [[7], [5], []]),
        ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1], []),
    ],
)
def test_by_hand(keep, reach, expected):
    keep = np.array(keep, bool)
    given = np.array([5, 6, 7, 8, 9], np.int32), np.array([0, 3, 5]), keep, np.array(reach, np.int8)
    context, words, at, kept_at = windows(*given)
    assert [context[first:last].tolist() for first, last in pairwise(at)] == expected
    assert words.tolist() == [word for word, kept in zip(range(5, 10), keep, strict=True) if kept]
    assert kept_at.tolist() == [0, *np.cumsum(keep)]
    assert context.dtype == words.dtype == np.int32
