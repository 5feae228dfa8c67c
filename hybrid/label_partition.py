"""Trees over labels whose likes lie together: balanced k-means of labels by the features of their examples.

A label's vector is the mean of the unit features of the examples that have it ("positive instance feature aggregation"), made
a unit vector. A node's labels are cut into `arity` equal parts, by repeated halving at the median of how much nearer a label
is to one of two centres than to the other, until few enough are left to be leaves. Cost: log2(V / leaves) levels of a few
products with the labels' vectors, which stay sparse.

Prabhu et al. 2018, "Parabel: partitioned label trees for extreme classification"; Yu et al. 2022, "PECOS", JMLR 23.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from . import check

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDS = 20  # of k-means at most; it ends where nobody moves


def label_clusters(
    features: Any, labels: Any, *, arity: int = 2, leaves: int = 100, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """A tree over V labels, as LabelTreeReadout takes it: parents (N,) int32, -1 at the root, and leaf (V,) int32.

    features  (B, F) of B examples: scipy sparse or an array
    labels    (B, V) scipy sparse or an array: not zero where an example has the label
    arity     parts of an inner node
    leaves    most labels that hang from one node, directly
    seed      of the first centres

    A label without examples has no likes; it goes where there is room. Raises ValueError for parts that do not fit together.
    """
    check.whole("arity", arity, 2)
    check.whole("leaves", leaves, 1)
    check.whole("seed", seed, 0)
    vectors = _vectors(*examples(features, labels))
    return _tree(vectors, arity, max(leaves, arity), np.random.default_rng(seed))


def examples(features: Any, labels: Any) -> tuple["csr_array", "csr_array"]:
    """Features (B, F) float32 and labels (B, V) as CSR, an entry for each label; ValueError where they do not fit together."""
    x, y = check.csr("features", features, dtype=np.float32), check.csr("labels", labels, zeros=False)
    if x.shape[0] != y.shape[0] or y.shape[1] < 2:
        raise ValueError(
            f"found features {x.shape} and labels {y.shape}, expected a row an example in both, and at least 2 labels"
        )
    return x, y


def _vectors(features: "csr_array", labels: "csr_array") -> "csr_array":
    """(V, F) unit vectors of the labels; those of labels without examples are 0."""
    from scipy import sparse

    have = sparse.csr_array((np.ones(labels.indices.size, np.float32), labels.indices, labels.indptr), labels.shape)
    return _units(sparse.csr_array(have.T @ _units(features)))


def _units(rows: "csr_array") -> "csr_array":
    from scipy import sparse

    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1), dtype=np.float32) @ rows)


def _tree(vectors: "csr_array", arity: int, leaves: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    parents, leaf = [-1], np.empty(vectors.shape[0], np.int32)
    open_nodes = [(0, np.arange(vectors.shape[0]))]
    while open_nodes:
        node, own = open_nodes.pop()
        if len(own) <= leaves:
            leaf[own] = len(parents) + np.arange(len(own))
            parents += [node] * len(own)
            continue
        for part in _parts(vectors, own, arity, rng):
            open_nodes.append((len(parents), part))
            parents.append(node)
    return np.array(parents, np.int32), leaf


def _parts(vectors: "csr_array", own: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Some labels in `count` parts of equal size, up to one."""
    if count == 1:
        return [own]
    left = count // 2
    one, other = _cut(vectors, own, len(own) * left // count, rng)
    return _parts(vectors, one, left, rng) + _parts(vectors, other, count - left, rng)


def _cut(vectors: "csr_array", own: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The `size` labels that are nearer to one centre than the others are, and those; both rise."""
    rows = vectors[own]
    first = rng.choice(len(own), 2, replace=False)
    between = rows[first[:1]].toarray()[0] - rows[first[1:]].toarray()[0]
    before = None
    for _ in range(ROUNDS):
        near = np.zeros(len(own), bool)
        near[np.argsort(-(rows @ between), kind="stable")[:size]] = True
        if before is not None and np.array_equal(near, before):
            break
        before = near
        between = _unit(rows.T @ near.astype(np.float32)) - _unit(rows.T @ (~near).astype(np.float32))
    return own[near], own[~near]


def _unit(vector: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector
