"""A sparse label tree of few labels, its examples, and its weights as a table."""

import numpy as np
from scipy import sparse

from cpu import sparse_label_tree
from cpu.sparse_label_tree import LabelTree, Penalty, Weights, from_parents

LABELS, FEATURES, BOUND = 45, 30, 4.0


def shape() -> LabelTree:
    """A root with two nodes, of 40 and 3 labels, and two labels of its own."""
    return from_parents([-1, 0, 0, *[1] * 40, *[2] * 3, 0, 0], np.random.default_rng(0).permutation(np.arange(3, 48)))


def examples(count: int = 120, seed: int = 0):
    """Features (B, F) and labels (B, V) as CSR; some examples have no label, some labels are rare."""
    rng = np.random.default_rng(seed)
    x = sparse.random_array((count, FEATURES), density=0.2, rng=rng, dtype=np.float32, format="csr")
    x.sort_indices()
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    y = (rng.random((count, LABELS)) < 0.06) & (rng.random((count, 1)) < 0.9)
    return x, sparse.csr_array(y.astype(int))


def fitted(tree: LabelTree, x, y, *, bound=BOUND, least: float = 0.0, tolerance: float = 1e-3) -> Weights:
    bounds = np.broadcast_to(bound, x.shape[:1]).astype(np.float32)
    return sparse_label_tree.fit(tree, x, y, Penalty(bounds, tolerance, 1000, least, 7))


def positive(tree: LabelTree, y) -> np.ndarray:
    """(B, N) bool: whether an example has a label below a node."""
    has = np.zeros((y.shape[0], tree.up.size), bool)
    has[:, tree.leaf] = y.toarray() != 0
    for node in range(tree.up.size - 1, 0, -1):
        has[:, tree.up[node]] |= has[:, node]
    return has


def dense(weights: Weights, features: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights (N, F) and biases (N,) of all nodes."""
    rows = np.zeros((weights.biases.size, features), np.float32)
    for m in range(weights.node_at.size - 1):
        for e in range(weights.feature_at[m], weights.feature_at[m + 1]):
            entries = slice(weights.weight_at[e], weights.weight_at[e + 1])
            rows[weights.node_at[m] + weights.node[entries], weights.feature[e]] = weights.weight[entries]
    return rows, weights.biases
