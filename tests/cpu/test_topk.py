import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpu.output import topk


@numba.njit
def best(ids, scores, stream):
    for i in range(stream.size):
        topk.push(ids, scores, i, stream[i])
    topk.sort(ids, scores)


def run(stream, k):
    ids, scores = np.full(k, -1, np.int32), np.full(k, -np.inf, np.float32)
    best(ids, scores, np.array(stream, np.float32))
    return ids.tolist(), scores.tolist()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(1, 40))
def test_the_first_of_a_sorted_list(stream, k):
    k = min(k, len(stream))
    order = sorted(range(len(stream)), key=lambda i: (-stream[i], i))[:k]
    assert run(stream, k) == (order, [stream[i] for i in order])


def test_a_nan_stays_visible():
    ids, scores = run([1, np.nan, 2], 3)
    assert ids == [1, 2, 0] and np.isnan(scores[0]) and scores[1:] == [2, 1]
