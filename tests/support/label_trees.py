"""Label trees of several shapes, examples with any number of labels, and the arithmetic in float64, one node after another."""

import numpy as np

from cpu.label_tree import LabelTree, binary, from_parents
from cpu.tree.tree import balanced, huffman

LABELS, WIDTH = 23, 7


def flat(labels: int = LABELS) -> LabelTree:
    """Every label hangs from the root: one against the rest."""
    return from_parents([-1] + [0] * labels, np.arange(1, labels + 1))


def uneven() -> LabelTree:
    """Nodes of one to six children, labels at all levels, numbered without order."""
    parents = [4, 4, 0, 0, -1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 0]
    childless = sorted(set(range(len(parents))) - set(parents))
    return from_parents(parents, np.random.default_rng(0).permutation(childless))


SHAPES = {
    "huffman": lambda: binary(huffman(np.arange(LABELS) ** 2)),
    "balanced": lambda: binary(balanced(LABELS)),
    "flat": flat,
    "uneven": uneven,
}


def examples(labels: int, count: int = 40, seed: int = 0, width: int = WIDTH):
    """Hidden vectors (B, D) float64, target and target_at; some examples have no label, some the same one twice."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, count)
    target_at = np.concatenate([[0], np.cumsum(sizes)])
    return rng.normal(size=(count, width)), rng.integers(0, labels, target_at[-1]).astype(np.int32), target_at


def visited(tree: LabelTree, labels) -> dict[int, int]:
    """node -> turn of an example's nodes: the root, and the children of nodes with one of the labels below."""
    positive = set()
    for label in labels:
        node = int(tree.leaf[label])
        while node >= 0:
            positive.add(node)
            node = int(tree.up[node])
    below = [int(n) for node in positive for n in range(tree.child_at[node], tree.child_at[node + 1])]
    return {node: int(node in positive) for node in [0, *below]}


def log_sigmoid(score):
    return -np.logaddexp(0, -score)


def serial_step(rows, tree, hidden, target, target_at, rate):
    """Losses and gradients of the serial loop over examples; moves rows."""
    loss, grad = np.zeros(len(hidden)), np.zeros_like(hidden)
    for b, h in enumerate(hidden):
        for node, turn in visited(tree, target[target_at[b] : target_at[b + 1]]).items():
            score = rows[node] @ h
            miss = turn - np.exp(log_sigmoid(score))
            loss[b] -= log_sigmoid(score if turn else -score)
            grad[b] -= miss * rows[node]
            rows[node] += rate * miss * h
    return loss, grad


def every(rows, tree, hidden):
    """The log-probability of each label, (B, V): the sum along its path."""
    out = np.zeros((len(hidden), tree.leaf.size))
    for label, leaf in enumerate(tree.leaf):
        node = int(leaf)
        while node >= 0:
            out[:, label] += log_sigmoid(hidden @ rows[node])
            node = int(tree.up[node])
    return out
