"""The k best of a stream, the heap of best-first searches, and what searches exclude, in each of them."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu import softmax, tree_softmax
from cpu.output import scores, topk
from cpu.output.topk import Excluded
from cpu.search import brute_force
from cpu.tree.tree import huffman
from hybrid.contract import Learned


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


def drawn(rows, classes, seed):
    """What rows leave out: none, all, and some; as a mask too."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, classes)) < rng.random((rows, 1))
    mask[0], mask[1] = False, True
    at = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    return Excluded(at[:-1], at[1:], np.nonzero(mask)[1].astype(np.int32)), mask


def best_of(every, mask, k):
    """Brute force: the k best of all scores, by rising id among equals."""
    every = np.where(mask, -np.inf, every)
    ids = np.argsort(-every, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(every, ids, axis=1)
    return np.where(np.isneginf(found), -1, ids), found


FINDS = {
    "softmax": lambda ids, out, table, hidden, without: softmax.best_without(
        ids, out, Learned(table), softmax.workspace(len(hidden), table.shape[1], table.dtype), hidden, without
    ),
    "dot": lambda ids, out, table, hidden, without: brute_force.search(ids, out, table, hidden, "dot", without=without),
    "tree": lambda ids, out, table, hidden, without: tree_softmax.best(
        ids, out, Learned(table[1:]), huffman(np.arange(len(table))), hidden, without
    ),
}


@pytest.mark.parametrize("find", FINDS)
@pytest.mark.parametrize("classes, k", [(2, 2), (40, 40), (700, 5), (5000, 30)])
def test_the_best_of_the_rest_is_that_of_brute_force(find, classes, k):
    rng = np.random.default_rng(classes)
    table, hidden = (rng.normal(size=(rows, 5)).astype(np.float32) for rows in (classes, 6))
    without, mask = drawn(6, classes, k)
    every = np.empty((6, classes), np.float32)
    if find == "tree":
        scores.tree(every, Learned(table[1:]), huffman(np.arange(classes)), hidden)
    elif find == "softmax":
        scores.softmax(every, Learned(table), hidden)
    else:
        every = hidden @ table.T
    ids, found = np.empty((6, k), np.int32), np.empty((6, k), np.float32)
    FINDS[find](ids, found, table, hidden, without)
    wanted, expected = best_of(every, mask, k)
    np.testing.assert_array_equal(ids, wanted)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (ids[1] == -1).all() and np.isneginf(found[1]).all()
