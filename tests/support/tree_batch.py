"""One step of a tree whose nodes learn from a few examples at once: on the CPU, and by the oracle."""

import numpy as np

from cpu import tree_batch
from cpu.tree.tree import path
from tests.support.visits import copied, learn_together


def run(tree, learned, hidden, target, together, rate=0.1, weight=None):
    """grad, loss and what the nodes have become, on a copy."""
    learned = copied(learned, np.copy)
    work = tree_batch.workspace(*hidden.shape, tree.depth, together, hidden.dtype)
    grad, loss = np.empty_like(hidden), np.empty(len(hidden), hidden.dtype)
    tree_batch.step(grad, loss, learned, work, tree_batch.plan(tree), hidden, target, weight, rate, together)
    return grad, loss, learned


def oracle(tree, learned, hidden, target, together, rate=0.1, weight=None):
    """The same in float64."""
    learned, lists = copied(learned), [path(tree, leaf) for leaf in target]
    weight = np.ones(len(target)) if weight is None else weight
    grad, loss = learn_together(learned, hidden.astype(float), lists, weight, rate, together)
    return grad, loss, learned
