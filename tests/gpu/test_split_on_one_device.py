"""A split tree wholly on the device: the numbers of the oracle, and nothing but targets and losses crosses.

Here is tested hybrid/readout/split_tree.py, with a tail beside its top.
"""

import numpy as np
import pytest

from cpu.tree import huffman, path
from hybrid import backend
from hybrid.readout import TreeReadout
from tests.support.split_tree import oracle
from tests.support.tree_nodes import learn
from tests.support.tree_softmax import case

COUNTS = 1000 // np.arange(1, 41)


def made(split, width, **more):
    given = {"split_tail": "device", "batch": 200, "rate": 0.05, "backend": backend.choose("cuda:0")}
    return TreeReadout(COUNTS, width, split=split, **given | more)


@pytest.mark.parametrize("split, width", [(1, 5), (3, 128), (15, 33), (39, 7)])
def test_a_step_is_the_oracles(gpu, split, width):
    """The top by the batch, the tail in order; 39 nodes are the whole tree."""
    tree, (nodes, hidden, target) = huffman(COUNTS), case(40, width, 150)
    readout, grad = made(split, width), np.empty_like(hidden)
    readout.nodes[:] = nodes
    readout.send()
    loss = readout.step(grad, hidden, target)
    upper, losses, top = oracle(tree, split, nodes, hidden, target, 0.05)
    tails = [[step for step in path(tree, leaf) if step[0] >= split] for leaf in target]
    rows = nodes.astype(float)
    lower, more = learn(rows, hidden.astype(float), tails, 0.05)
    rows[:split] = top
    readout.fetch()
    np.testing.assert_allclose(readout.nodes, rows, rtol=0, atol=3e-5)
    np.testing.assert_allclose(grad, upper + lower, rtol=0, atol=3e-5)
    assert loss == pytest.approx((losses + more).mean(), rel=1e-5)


def test_only_targets_and_losses_cross(gpu):
    assert set(made(3, 5).buffers().crossing) == {"target", "weight", "losses"}
