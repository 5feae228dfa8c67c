"""The most likely classes of a head with trees; that they are those of all is in tests/hybrid/readout/test_readouts.py."""

import numpy as np

from cpu.output import head_parts, topk
from cpu.tree import cluster_trees
from hybrid.contract import Learned


def test_equally_likely_classes_come_by_rising_number_wherever_they_are():
    """Classes 1 and 4 alone, the others in two trees and a cluster of one class; slots and turns are powers of two."""
    cluster = np.int32([0, -1, 0, 1, -1, 1, 1, 1, 2])
    made = cluster_trees.huffman(cluster, np.ones(9))
    nodes = np.zeros((len(made.tree.node_up), 2), np.float32)
    slots = np.log(np.float32([[0.125, 0.125, 0.25, 0.25, 0.25], [0.25, 0.0625, 0.125, 0.5, 0.0625]]))
    hidden, ids, log_probs = np.ones((2, 2), np.float32), np.empty((2, 6), np.int32), np.empty((2, 6), np.float32)
    given = Learned(nodes), made, slots, np.int32([1, 4]), hidden
    head_parts.best(ids, log_probs, *given, topk.none_excluded(2))
    assert ids.tolist() == [[8, 0, 1, 2, 4, 3], [1, 3, 5, 6, 7, 0]]
    np.testing.assert_allclose(np.exp(log_probs[0]), [0.25, 0.125, 0.125, 0.125, 0.125, 0.0625], rtol=1e-6)
    without = topk.Excluded(np.int64([0, 3]), np.int64([3, 3]), np.int32([1, 5, 8]))
    head_parts.best(ids, log_probs, *given, without)
    assert ids.tolist() == [[0, 2, 4, 3, 6, 7], [1, 3, 5, 6, 7, 0]]
