"""Search for the likeliest classes: exact search against all leaves, a wide beam against exact search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu import tree_search, tree_softmax
from cpu.tree import balanced, huffman
from hybrid.contract import Learned


def case(classes, width, batch, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(classes - 1, width)), rng.normal(size=(batch, width))


def everything(tree, nodes, hidden):
    """log p of all classes, (B, V)."""
    classes = tree.leaf_up.size
    out = np.empty((len(hidden), classes))
    for b in range(len(hidden)):
        copies = np.repeat(hidden[b : b + 1], classes, 0)
        tree_softmax.log_prob(out[b], Learned(nodes), tree, copies, np.arange(classes, dtype=np.int32))
    return out


def found(find, tree, nodes, hidden, k, *arguments):
    ids = np.empty((len(hidden), k), np.int32)
    log_probs = np.empty((len(hidden), k), hidden.dtype)
    find(ids, log_probs, Learned(nodes), tree, hidden, *arguments)
    return ids, log_probs


@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=50),
    st.integers(1, 50),
    st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    st.integers(0, 2**31),
)
def test_best_is_the_top_of_everything(counts, k, scale, seed):
    tree, k = huffman(counts), min(k, len(counts))
    nodes, hidden = case(len(counts), 6, 5, scale, seed)
    ids, log_probs = found(tree_search.best, tree, nodes, hidden, k)
    every = everything(tree, nodes, hidden)
    np.testing.assert_allclose(log_probs, -np.sort(-every, 1)[:, :k], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(every, ids, 1), log_probs, atol=1e-12)
    assert all(len(set(row)) == k for row in ids.tolist())


@given(st.integers(2, 40), st.integers(0, 2**31))
def test_a_beam_as_wide_as_the_tree_misses_nothing(classes, seed):
    tree = balanced(classes)
    nodes, hidden = case(classes, 6, 5, seed=seed)
    for exact, wide in zip(
        found(tree_search.best, tree, nodes, hidden, classes),
        found(tree_search.beam, tree, nodes, hidden, classes, classes),
        strict=True,
    ):
        np.testing.assert_array_equal(exact, wide)


def test_equals_come_by_rising_class():
    tree = balanced(16)  # all scores 0: every class has 1/16, exactly
    nodes, hidden = np.zeros((15, 4)), np.ones((2, 4))
    for ids, log_probs in (
        found(tree_search.best, tree, nodes, hidden, 16),
        found(tree_search.beam, tree, nodes, hidden, 16, 16),
    ):
        assert (ids == np.arange(16)).all()
        np.testing.assert_allclose(log_probs, np.log(1 / 16))


def test_large_trees_and_every_class(threads):
    tree = huffman(10**6 // np.arange(1, 5001))  # more prefixes than the heap begins with
    nodes, hidden = case(5000, 16, 7, 0.1)
    ids, log_probs = found(tree_search.best, tree, nodes, hidden, 5000)
    every = everything(tree, nodes, hidden)
    assert (np.sort(ids, 1) == np.arange(5000)).all()
    np.testing.assert_allclose(log_probs, -np.sort(-every, 1), atol=1e-11)


def test_a_beam_follows_the_likeliest_prefixes(threads):
    tree = huffman(10**6 // np.arange(1, 2001))
    nodes, hidden = case(2000, 16, 9, 2.0)
    exact, _ = found(tree_search.best, tree, nodes, hidden, 5)
    last = 0.0
    for width in (1, 8, 64, 2000):
        ids, log_probs = found(tree_search.beam, tree, nodes, hidden, 5, width)
        every = everything(tree, nodes, hidden)
        met = ids >= 0
        assert (np.diff(log_probs[:, :2], axis=1) <= 0).all()
        np.testing.assert_allclose(np.where(met, np.take_along_axis(every, ids, 1), -np.inf), log_probs, atol=1e-11)
        recall = (ids[:, :, None] == exact[:, None]).any(1).mean()
        assert recall >= last
        last = recall
    assert last == 1


@pytest.mark.parametrize("root", [-3.0, 3.0])
def test_a_beam_of_one_prefix_keeps_the_leaf_beside_it(root):
    """Of a root with a leaf and a node below it: whether the leaf comes before the node or behind it, it is met."""
    tree = huffman([3, 1, 1])
    nodes, hidden = np.array([[root], [1.0]]), np.ones((1, 1))
    for wide, exact in zip(
        found(tree_search.beam, tree, nodes, hidden, 3, 1), found(tree_search.best, tree, nodes, hidden, 3), strict=True
    ):
        np.testing.assert_array_equal(wide, exact)


def test_fewer_classes_met_than_asked_for():
    tree = balanced(64)
    nodes, hidden = case(64, 4, 3)
    ids, log_probs = found(tree_search.beam, tree, nodes, hidden, 5, 1)
    assert (ids[:, :2] >= 0).all() and (ids[:, 2:] == -1).all() and np.isneginf(log_probs[:, 2:]).all()


def test_two_classes():
    tree = balanced(2)
    nodes, hidden = np.array([[2, 0]], np.float32), np.array([[1, 5], [-1, 5]], np.float32)
    for ids, log_probs in (
        found(tree_search.best, tree, nodes, hidden, 2),
        found(tree_search.beam, tree, nodes, hidden, 2, 9),
    ):
        assert ids.tolist() == [[1, 0], [0, 1]]
        np.testing.assert_allclose(np.exp(log_probs), [[0.8807971, 0.1192029]] * 2, rtol=1e-6)
