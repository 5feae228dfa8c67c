"""Owners of a tree readout's nodes: they change no node, and a checkpoint goes on with as many."""

import numpy as np
import pytest

from hybrid.readout import TreeReadout, rebuild


def batch(classes, width, rows=32, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, width)).astype(np.float32)
    return np.empty_like(hidden), hidden, rng.integers(0, classes, rows).astype(np.int32)


@pytest.mark.parametrize("shape", ["huffman", "balanced"])
@pytest.mark.parametrize("split", [0, 3])
def test_a_tree_with_more_owners_moves_its_nodes_alike_and_is_rebuilt_with_them(threads, shape, split):
    counts = 1000 // np.arange(1, 301)
    few, many = (TreeReadout(counts, 8, tree=shape, split=split, batch=32, owners=owners) for owners in (4, 16))
    assert "owners" not in few.describe() and many.tree.owner.max() == 15
    again = rebuild(many.describe())
    for seed in range(3):
        grad, hidden, target = batch(300, 8, seed=seed)
        expected = np.empty_like(grad)
        few.step(expected, hidden, target)
        again.step(grad.copy(), hidden, target)
        many.step(grad, hidden, target)
        np.testing.assert_allclose(grad, expected, atol=1e-6)
    np.testing.assert_array_equal(many.nodes, few.nodes)
    if shape == "balanced":  # whose checkpoint has no counts: the nodes alone are to be filled in
        np.testing.assert_array_equal(again.tree.owner, many.tree.owner)
    assert again.owners == 16 and again.tree.owner.max() == 15
