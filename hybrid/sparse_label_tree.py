"""A linear label tree for many labels and sparse features: no hidden layer, each node trained to its optimum."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import check
from .neighbours import csr

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cpu.sparse_label_tree import LabelTree, Weights

ROUNDS = 20  # maximum k-means iterations; stops at convergence
WIDE = 4  # growth factor of the candidates per tree, if the first are too few
PART = 2**22  # labels computed at a time


@dataclass(frozen=True)
class NodeSolver:
    """Settings of the logistic regression solver at the tree's nodes.

    C          weight of the loss against |w|^2 / 2: lower is smoother
    tolerance, passes  a node's training stops after a pass without a larger violation of optimality, or after this many
    least      weights of at most this magnitude are dropped
    """

    C: float = 10.0
    tolerance: float = 0.1
    passes: int = 10
    least: float = 0.05

    def __post_init__(self) -> None:
        check.whole("passes", self.passes, 1)
        if not check.number("C", self.C, 0) or not check.number("tolerance", self.tolerance, 0):
            raise ValueError(f"C {self.C}, tolerance {self.tolerance}: expected numbers above 0")
        check.number("least", self.least, 0)


class SparseLabelTree:
    """A probabilistic label tree of logistic regressions over sparse features, or the mean of several; trained on creation.

    features   (B, F) of B examples: scipy sparse or an array, such as TF-IDF with rows of length 1
    labels     (B, V) scipy sparse or an array: nonzero where an example has the label; an example may have none
    trees      number of trees, from label clusters with different seeds, see `label_clusters`: label probabilities are
               averaged; or (parents, leaf), one custom tree
    arity, leaves  of the clusters: children of an inner node; maximum labels below one node
    solver     node training; None: NodeSolver()
    weight     (B,) of examples, multiplies C; None: all equal
    seed       of clusters and of the order of examples

    Cost: a pass over a tree reads an example's features once per visited node: at most arity log V and `leaves` for each of
    its labels. Memory, in addition to the weights (8 bytes each): cpu/sparse_label_tree.py. Queries are exact, also for
    several trees, and cost the nodes that a best-first search opens. Results do not depend on the thread count, which is
    Numba's. Instances can be pickled.

    Raises ValueError for mismatched arrays and for numbers that are not finite.

    Prabhu et al. 2018, "Parabel"; Jasinska-Kobus et al. 2020, "Probabilistic label trees for extreme multi-label
    classification", arXiv:2009.11218.
    """

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        trees: int | tuple[Any, Any] = 1,
        arity: int = 2,
        leaves: int = 100,
        solver: NodeSolver | None = None,
        weight: np.ndarray | None = None,
        seed: int = 0,
    ):
        from cpu import sparse_label_tree as kernels

        x, y = examples(features, labels)
        solver = solver or NodeSolver()
        own = trees if isinstance(trees, tuple) and len(trees) == 2 else None
        count = 1 if own else check.whole("trees", trees, 1, 100)
        check.whole("seed", seed, 0, 2**63 - 1)
        bound = _bound(x.shape[0], solver.C, weight)
        penalty = kernels.Penalty(bound, solver.tolerance, solver.passes, solver.least, 0)
        self.features, self.labels = x.shape[1], y.shape[1]
        self._trees: list[tuple[LabelTree, Weights]] = []
        for turn in range(seed, seed + count):
            shape = kernels.from_parents(*(own or label_clusters(x, y, arity=arity, leaves=leaves, seed=turn)))
            if len(shape.leaf) != self.labels:
                raise ValueError(f"trees: found {len(shape.leaf)} leaves, expected {self.labels}, one per label")
            self._trees.append((shape, kernels.fit(shape, x, y, penalty._replace(seed=turn))))

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], features: int, labels: int) -> "SparseLabelTree":
        """Restores a model from its `arrays`; ValueError if they are invalid."""
        from cpu.sparse_label_tree import SAVED, from_parents, restored

        made = cls.__new__(cls)
        made.features, made.labels, made._trees = features, labels, []
        for tree in sorted({name.partition(".")[0] for name in arrays}):
            forms = {"up": np.int32, "leaf": np.int32, **SAVED}
            own = {
                name: check.array(f"{tree}.{name}", arrays.get(f"{tree}.{name}"), (None,), of)
                for name, of in forms.items()
            }
            shape = from_parents(own.pop("up"), own.pop("leaf"))
            same = np.array_equal(shape.up, arrays[f"{tree}.up"]) and len(shape.leaf) == labels
            if not same or not all(np.isfinite(own[name]).all() for name in ("biases", "weight")):
                raise ValueError(f"{tree}: found no tree of {labels} labels with finite weights, as this writes it")
            made._trees.append((shape, restored(shape, features, **own)))
        return made

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the trees by name, for `of`; views."""
        from cpu.sparse_label_tree import SAVED

        arrays: dict[str, np.ndarray] = {}
        for number, (shape, weights) in enumerate(self._trees):
            own = {"up": shape.up, "leaf": shape.leaf} | {name: getattr(weights, name) for name in SAVED}
            arrays |= {f"{number:03d}.{name}": array for name, array in own.items()}
        return arrays

    def join(self, other: "SparseLabelTree") -> None:
        """Adds the trees of another model to the average; ValueError if features or labels differ."""
        if (other.features, other.labels) != (self.features, self.labels):
            raise ValueError(
                f"other: found {other.features} features and {other.labels} labels, expected {self.features} and {self.labels}"
            )
        self._trees += other._trees

    @property
    def weights(self) -> int:
        """The number of stored weights and biases."""
        return sum(kept.weight.size + kept.biases.size for _, kept in self._trees)

    def best(self, features: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely labels per example, descending: ids (B, k) int32, log-probabilities (B, k) float32.

        Raises ValueError for k outside 1 to V, and for features that do not match training.
        """
        x = self._check(features)
        check.whole("k", k, 1, self.labels)
        ids, log_probs = np.empty((x.shape[0], k), np.int32), np.empty((x.shape[0], k), np.float32)
        for part in _parts(x.shape[0], k):
            ids[part], log_probs[part] = self._best(x[part], k)
        return ids, log_probs

    def likely(self, features: Any, threshold: float) -> "csr_array":
        """Returns labels of probability at least `threshold`, in (0, 1], most likely first: CSR (B, V) of probabilities."""
        x = self._check(features)
        if not 0 < check.number("threshold", threshold, 0) <= 1:
            raise ValueError(f"threshold: found {threshold}, expected a probability above 0 and up to 1")
        from scipy.sparse import csr_array, vstack

        least, k, rows = np.log(threshold), min(16, self.labels), []
        for part in _parts(x.shape[0], 16):
            ids, log_probs = self._best(x[part], k)
            while k < self.labels and (log_probs[:, -1] >= least).any():
                k = min(WIDE * k, self.labels)
                ids, log_probs = self._best(x[part], k)
            rows.append(csr(np.where(log_probs >= least, ids, -1), np.exp(log_probs), self.labels))
        return csr_array(vstack(rows) if rows else (0, self.labels), dtype=np.float32)

    def scores(self, features: Any) -> np.ndarray:
        """Returns the log-probability of every label, (B, V) float32. Labels are independent: probabilities do not sum to 1."""
        x = self._check(features)
        out = np.empty((x.shape[0], self.labels), np.float32)
        for part in _parts(x.shape[0], self.labels):
            ids, log_probs = self._best(x[part], self.labels)
            np.put_along_axis(out[part], ids.astype(np.int64), log_probs, axis=1)
        return out

    def _best(self, x: "csr_array", k: int) -> tuple[np.ndarray, np.ndarray]:
        """Searches one tree directly; for several, widens the candidates of each until the top k is exact.

        A label outside all trees' first K has at most the mean of their K-th probabilities. The k best that reach it are exact.
        """
        if len(self._trees) == 1:
            return self._ranked(0, x, k)
        wide, open_rows = k, np.arange(x.shape[0])
        ids, log_probs = np.empty((x.shape[0], k), np.int32), np.empty((x.shape[0], k), np.float32)
        while open_rows.size:
            ranked = [self._ranked(tree, x[open_rows], wide) for tree in range(len(self._trees))]
            ids[open_rows], log_probs[open_rows] = self._merged(x[open_rows], [own for own, _ in ranked], k)
            rest = np.mean([np.exp(own[:, -1]) for _, own in ranked], axis=0)
            open_rows = open_rows[(np.exp(log_probs[open_rows, -1]) < rest) & (wide < self.labels)]
            wide = min(WIDE * wide, self.labels)
        return ids, log_probs

    def _merged(self, x: "csr_array", candidates: list[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely of the trees' candidates; ties by ascending id."""
        ids = np.sort(np.concatenate(candidates, axis=1), axis=1)
        ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
        log_probs = self._given(x, ids)
        first = np.lexsort((np.where(ids < 0, self.labels, ids), -log_probs), axis=1)[:, :k]
        return np.take_along_axis(ids, first, 1), np.take_along_axis(log_probs, first, 1)

    def _ranked(self, tree: int, x: "csr_array", k: int) -> tuple[np.ndarray, np.ndarray]:
        from cpu import sparse_label_tree

        ids, log_probs = np.empty((x.shape[0], k), np.int32), np.empty((x.shape[0], k), np.float32)
        sparse_label_tree.best(ids, log_probs, *self._trees[tree], *_arrays(x))
        return ids, log_probs

    def _given(self, x: "csr_array", labels: np.ndarray) -> np.ndarray:
        from cpu import sparse_label_tree

        each = np.empty((len(self._trees), *labels.shape), np.float32)
        for out, (tree, weights) in zip(each, self._trees, strict=True):
            sparse_label_tree.given(out, tree, weights, labels, *_arrays(x))
        return each[0] if len(each) == 1 else np.logaddexp.reduce(each) - np.float32(np.log(len(each)))

    def _check(self, features: Any) -> "csr_array":
        return check.csr("features", features, (None, self.features), dtype=np.float32)


def _arrays(x: "csr_array") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return x.indptr.astype(np.int64), x.indices.astype(np.int32), x.data


def _bound(examples: int, C: float, weight: np.ndarray | None) -> np.ndarray:
    """Returns the weight of each example's loss."""
    bound = np.full(examples, C, np.float32)
    if weight is None:
        return bound
    weight = np.asarray(check.unmasked("weight", weight))
    if weight.shape != (examples,) or weight.dtype.kind not in "biuf" or not (weight >= 0).all():
        raise ValueError(f"weight: found {weight.dtype} {weight.shape}, expected {examples} numbers of at least 0")
    check.finite("weight", weight)
    return bound * weight.astype(np.float32)


def _parts(rows: int, k: int) -> list[slice]:
    size = max(PART // k, 1)
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


# Trees over similar labels: balanced k-means of labels by the features of their examples.
#
# A label's vector is the mean of the unit features of its examples ("positive instance feature aggregation"), normalised. A
# node's labels are split into `arity` equal parts by repeated halving, until at most `leaves` are left. A halving sorts
# labels by the difference of their similarities to two centres and cuts at the median. Cost: log2(V / leaves) levels of a few
# products with the label vectors, which stay sparse.
#
# Prabhu et al. 2018, "Parabel: partitioned label trees for extreme classification"; Yu et al. 2022, "PECOS", JMLR 23.


def label_clusters(
    features: Any, labels: Any, *, arity: int = 2, leaves: int = 100, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a tree over V labels for SparseLabelTree: parents (N,) int32, -1 at the root, and leaf (V,) int32.

    features  (B, F) of B examples: scipy sparse or an array
    labels    (B, V) scipy sparse or an array: nonzero where an example has the label
    arity     children of an inner node
    leaves    maximum labels directly below one node
    seed      of the first centres

    Labels without examples go where there is room. Raises ValueError for mismatched arrays.
    """
    check.whole("arity", arity, 2)
    check.whole("leaves", leaves, 1)
    check.whole("seed", seed, 0)
    vectors = _vectors(*examples(features, labels))
    return _tree(vectors, arity, max(leaves, arity), np.random.default_rng(seed))


def examples(features: Any, labels: Any) -> tuple["csr_array", "csr_array"]:
    """Returns features (B, F) float32 and labels (B, V) as CSR, one entry per label; ValueError if they do not match."""
    x, y = check.csr("features", features, dtype=np.float32), check.csr("labels", labels, zeros=False)
    if x.shape[0] != y.shape[0] or y.shape[1] < 2:
        raise ValueError(f"found features {x.shape} and labels {y.shape}, expected as many rows, and at least 2 labels")
    return x, y


def _vectors(features: "csr_array", labels: "csr_array") -> "csr_array":
    """Returns unit vectors of the labels (V, F); 0 for labels without examples."""
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
        for part in _divided(vectors, own, arity, rng):
            open_nodes.append((len(parents), part))
            parents.append(node)
    return np.array(parents, np.int32), leaf


def _divided(vectors: "csr_array", own: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Splits labels into `count` parts whose sizes differ by at most one."""
    if count == 1:
        return [own]
    left = count // 2
    one, other = _cut(vectors, own, len(own) * left // count, rng)
    return _divided(vectors, one, left, rng) + _divided(vectors, other, count - left, rng)


def _cut(vectors: "csr_array", own: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Splits labels into the `size` relatively nearest to one of two centres, and the rest; both ascending."""
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
