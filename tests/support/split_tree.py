"""The step of a tree's top: as an oracle in float64, and on the CPU."""

import numpy as np

from cpu import split
from cpu.tree.tree import path
from cpu.tree.tree import split as cut
from hybrid.contract import Learned


def oracle(tree, top, nodes, hidden, target, rate):
    """grad, loss and nodes (K, D) after a step, in float64, from whole paths."""
    nodes, hidden = nodes[:top].astype(float), hidden.astype(float)
    grad, loss, moves = np.zeros(hidden.shape), np.zeros(len(hidden)), np.zeros_like(nodes)
    for b, leaf in enumerate(target):
        for node, turn in path(tree, leaf):
            if node < top:
                score = nodes[node] @ hidden[b]
                miss = turn - 1 / (1 + np.exp(-score))
                loss[b] += np.log1p(np.exp(-score if turn else score))
                grad[b] -= miss * nodes[node]
                moves[node] += rate * miss * hidden[b]
    return grad, loss, nodes + moves


def run(tree, top, nodes, hidden, target, rate):
    """One step on copies, with a gradient of ones to add to."""
    upper, _ = cut(tree, top)
    work = split.workspace(len(hidden) + 3, hidden.shape[1], top, nodes.dtype)
    grad, loss, moved = np.ones_like(hidden), np.full(len(hidden), np.nan, hidden.dtype), nodes[:top].copy()
    split.step(grad, loss, Learned(moved), work, upper, hidden, target, None, rate)
    return grad - 1, loss, moved
