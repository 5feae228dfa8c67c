"""Nodes, hidden vectors and targets of a tree, and one step of learning them on the CPU."""

import numpy as np

from cpu import tree_softmax
from hybrid.contract import Learned


def case(classes, width, batch, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    nodes = rng.normal(size=(classes - 1, width)).astype(dtype)
    hidden = (rng.normal(size=(batch, width)) / np.sqrt(width)).astype(dtype)
    target = np.minimum(rng.zipf(1.3, batch) - 1, classes - 1).astype(np.int32)
    return nodes, hidden, target


def run(tree, nodes, hidden, target, rate):
    """One step on copies: grad, loss and the moved nodes."""
    work = tree_softmax.workspace(*hidden.shape, tree.depth, hidden.dtype)
    grad, loss, nodes = np.empty_like(hidden), np.empty(len(hidden), hidden.dtype), nodes.copy()
    tree_softmax.step(grad, loss, Learned(nodes), work, tree, hidden, target, None, rate)
    return grad, loss, nodes
