"""The label tree: the probabilities of many labels, for examples with any number of labels."""

import functools
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from .. import check, sparse, trees
from ..neighbours import csr
from ..schedule.slot import Slot
from .base import Base, Common, described

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TREES = ("huffman", "balanced")
FIRST = 16  # initial number of labels in the search of `likely`


class LabelTreeReadout(Base):
    """A probabilistic label tree: every node of a tree over the labels, including leaves and root, has a logistic regression.

    It predicts whether an example with a label below the node's parent has one below the node. The probability of a label is
    the product of these on the path from the root to its leaf. Labels do not compete: their probabilities sum to the expected
    number of labels, and are all small for an example without labels.

    counts  label counts; a balanced or given tree needs only the number of labels
    width   numbers of a hidden vector
    tree    "huffman": short paths for frequent labels; "balanced": all paths about log2 V; or (parents, leaf), such as from
            clusters: a tree of N nodes of any arity, parents (N,) integers, -1 at the root, and leaf (V,) the labels' nodes
    batch   maximum examples per step
    backend that of the CPU; None: it
    optimiser  update rule of a node, applied example by example, so example b sees the updates of those before it: "sgd",
            "row-adagrad" or "adagrad", or one with a rate, such as hybrid.SGD(0.05) (default: 0.025)
    biases  True: every node has a bias

    Node rows start at 0. An example visits the root, and the children of every node that has one of its labels below: a step
    costs its labels' paths. `best` is exact. Raises ValueError for fewer than two labels, an invalid tree, missing counts.

    Jasinska et al. 2016, "Extreme F-measure maximization using sparse probability estimates"; Wydmuch et al. 2018, "A no-regret
    generalization of hierarchical softmax to extreme multi-label classification", arXiv:1810.11671.
    """

    kind = "label_tree"
    usual_rate = 0.025
    searches_on_host = True
    counts_unlabelled = True  # the root learns from them

    def __init__(self, counts: Any, width: int, *, tree: Any = "huffman", **common: Unpack[Common]):
        super().__init__(counts, width, **common)
        self._grow(*self._shape(tree))
        self.rows = sparse.table(len(self.tree.up), self.width)
        self._keep(self.rows)

    def _shape(self, tree: Any) -> tuple[Any, Any]:
        """Returns parents and leaf of the tree that a user names or passes."""
        from cpu.label_tree import binary

        if isinstance(tree, tuple) and len(tree) == 2:
            return tree
        if check.choice("tree", tree, TREES) == "huffman" and self.counts is None:
            raise ValueError('counts: found only how many labels there are; pass one count a label, or tree="balanced"')
        made = binary(trees.huffman(self.counts) if tree == "huffman" else trees.balanced(self.classes))
        return made.up, made.leaf

    def _grow(self, parents: Any, leaf: Any) -> None:
        from cpu.label_tree import from_parents

        self.tree = from_parents(parents, leaf)
        if len(self.tree.leaf) != self.classes:
            raise ValueError(f"tree: found {len(self.tree.leaf)} leaves, expected {self.classes}, one a label")
        self._length, self._work = 0, None

    def step(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None, target_at: Any = None
    ) -> float:
        """Learns from a batch and returns its mean loss in nats; see Readout.

        target     (T,) int32 labels, concatenated over examples
        target_at  (B + 1,) int64: example b has target[target_at[b] : target_at[b + 1]]; None: each has one label

        The loss of an example is the sum of -log p over the nodes that it visits, not a mean over its labels.
        """
        at = self._check_labels(hidden, target, target_at)
        self._check_rows(grad, hidden, weight)
        return self._learned(functools.partial(self.learn, target_at=at), grad, hidden, target, weight)

    def _learn_targets(self, slot: Slot) -> float:
        """Learns from a slot with the labels of an example together, which other readouts process one by one."""
        learn = functools.partial(self.learn, target_at=slot.target_at)
        return self._learned(learn, slot.grad, slot.hidden, slot.target, slot.weight)

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None, target_at: Any = None) -> None:
        target_at = np.arange(len(hidden) + 1) if target_at is None else target_at
        given = self._room(target, target_at), self.tree, hidden, target, target_at, weight, self._step_rate
        self.backend.label_tree.step(grad, loss, self._learns(self._there), *given)

    def label_losses(self, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray | None = None) -> np.ndarray:
        """Returns the unweighted loss of each example, (B,) float32, for arguments as in `step`; nothing learns."""
        target_at = self._check_labels(hidden, target, target_at)
        out = np.empty(len(hidden), np.float32)
        with self.alone:
            for part in self._parts(hidden):
                at = target_at[part.start : part.stop + 1]
                own, at = target[at[0] : at[-1]], at - at[0]
                work = self._room(own, at)
                self.backend.label_tree.losses(out[part], self._there, work, self.tree, hidden[part], own, at)
        return out

    def _room(self, target: np.ndarray, target_at: np.ndarray) -> Any:
        kernels = self.backend.label_tree
        length = kernels.longest(self.tree, target, target_at)
        if length > self._length or self._work is None:
            self._length = length + length // 2  # room for larger batches
            self._work = kernels.workspace(self.batch, self.width, self._length, np.float32)
        return self._work

    def likely(self, hidden: np.ndarray, threshold: float) -> "csr_array":
        """Returns the labels with a probability of at least `threshold`, in (0, 1]: as scipy CSR (B, V) of probabilities.

        The search is exact: it ends when no remaining label is likely enough. Raises ValueError as `best` does.
        """
        from scipy.sparse import csr_array, vstack

        self._check(hidden)
        if not 0 < check.number("threshold", threshold, 0) <= 1:
            raise ValueError(f"threshold: found {threshold}, expected a probability above 0 and up to 1")
        with self.alone:
            parts = [self._above(hidden[part], float(np.log(threshold))) for part in self._parts(hidden)]
        return csr_array(vstack(parts) if parts else (0, self.classes), dtype=np.float32)

    def _above(self, hidden: np.ndarray, least: float) -> "csr_array":
        """Returns the labels with at least this log-probability; extends the search until every row has ended."""
        from cpu.label_tree import best

        k = min(FIRST, self.classes)
        while True:
            ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
            best(ids, log_probs, self._host, self.tree, hidden, least)
            if k == self.classes or (ids[:, -1] < 0).all():
                break
            k = min(4 * k, self.classes)
        return csr(ids, np.exp(log_probs), self.classes)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the rows of the nodes (N, D), their optimiser state, and the tree: `parents` (N,) and `leaf` (V,)."""
        return {"rows": self.rows, "parents": self.tree.up, "leaf": self.tree.leaf} | sparse.beside(self._host)

    def describe(self) -> dict[str, Any]:
        """Returns the arguments of `rebuild`: the number of nodes; their tree is among the parameters."""
        return super().describe() | {"nodes": len(self.rows)}

    def restore(self, state: dict[str, Any]) -> None:
        self._grow(self.tree.up, self.tree.leaf)
        super().restore(state)

    def _check_labels(self, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray | None) -> np.ndarray:
        """Returns the label offsets of each example."""
        self._check(hidden)
        rows = len(hidden)
        check.array("target", target, (None if target_at is not None else rows,), np.int32)
        check.ids("target", target, self.classes)
        if target_at is None:
            return np.arange(rows + 1)
        check.array("target_at", target_at, (rows + 1,), np.int64)
        return check.bags("target_at", target_at, target.size, "targets")

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self.backend.label_tree.log_prob(out, self._host, self.tree, hidden, target)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> None:
        from cpu.label_tree import best

        best(ids, log_probs, self._host, self.tree, hidden, without=left_out)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu import label_tree

        label_tree.log_probs(out, self._host, self.tree, hidden)


def rebuild(classes: int, nodes: int, **facts: Any) -> LabelTreeReadout:
    """Returns the readout from describe(): with any tree of `nodes` nodes, until that of a checkpoint is restored."""
    inner = nodes - classes
    if inner < 1:
        raise ValueError(f"nodes: found {nodes}, expected more than the {classes} labels")
    parents = np.concatenate([np.arange(-1, inner - 1), np.full(classes, inner - 1)])
    return LabelTreeReadout(classes, tree=(parents, np.arange(inner, nodes)), **described(facts))


def least(classes: int, width: int, nodes: int, **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sparse.numbers(nodes, width, **facts)
