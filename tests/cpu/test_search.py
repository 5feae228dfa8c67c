"""Search for the likeliest classes of a tree: exact, against all leaves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpu import tree_softmax
from cpu.tree.tree import balanced, huffman
from hybrid.contract import Learned


def case(classes, width, batch, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    nodes, hidden = scale * rng.normal(size=(classes - 1, width)), rng.normal(size=(batch, width))
    return nodes.astype(np.float32), hidden.astype(np.float32)


def everything(tree, nodes, hidden):
    """log p of all classes, (B, V)."""
    classes = tree.leaf_up.size
    out = np.empty((len(hidden), classes), np.float32)
    for b in range(len(hidden)):
        copies = np.repeat(hidden[b : b + 1], classes, 0)
        tree_softmax.log_prob(out[b], Learned(nodes), tree, copies, np.arange(classes, dtype=np.int32))
    return out


def found(find, tree, nodes, hidden, k):
    ids = np.empty((len(hidden), k), np.int32)
    log_probs = np.empty((len(hidden), k), hidden.dtype)
    find(ids, log_probs, Learned(nodes), tree, hidden)
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
    ids, log_probs = found(tree_softmax.best, tree, nodes, hidden, k)
    every = everything(tree, nodes, hidden)
    np.testing.assert_allclose(log_probs, -np.sort(-every, 1)[:, :k], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(every, ids, 1), log_probs, rtol=1e-5, atol=1e-5)
    assert all(len(set(row)) == k for row in ids.tolist())


def test_equals_come_by_rising_class():
    tree = balanced(16)  # all scores 0: every class has 1/16, exactly
    nodes, hidden = np.zeros((15, 4), np.float32), np.ones((2, 4), np.float32)
    ids, log_probs = found(tree_softmax.best, tree, nodes, hidden, 16)
    assert (ids == np.arange(16)).all()
    np.testing.assert_allclose(log_probs, np.log(1 / 16), rtol=1e-6)


def test_large_trees_and_every_class(threads):
    tree = huffman(10**6 // np.arange(1, 5001))  # more prefixes than the heap begins with
    nodes, hidden = case(5000, 16, 7, 0.1)
    ids, log_probs = found(tree_softmax.best, tree, nodes, hidden, 5000)
    every = everything(tree, nodes, hidden)
    assert (np.sort(ids, 1) == np.arange(5000)).all()
    np.testing.assert_allclose(log_probs, -np.sort(-every, 1), rtol=1e-5, atol=1e-5)
