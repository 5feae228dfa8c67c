"""The tree readout: hierarchical softmax, in which the cost of a class is the length of its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from .. import check, sparse, trees
from ..schedule.guards import Held
from ..settings import option, rising
from .base import Base, Common, arguments, described

if TYPE_CHECKING:
    from cpu.tree.tree import Tree

TREES = ("huffman", "balanced")
GIVEN = "given"  # trees that do not follow from counts: a checkpoint has their pointers
CLUSTERED = "clustered"  # a shape that needs vectors: only on the command line, which makes them
MOST = 2**30  # classes: 2 * parent + turn is an int32
MODES = ("deterministic", "batch")
TOGETHER = 64


@dataclass(frozen=True)
class Batched:
    """Batched learning of up to `count` rows of a node at a time, which breaks serial chains: on GPUs alone. A CPU takes less
    time row by row, and does so.

    Results are bit-identical for any thread count and any float32 nodes. A node is updated by rate times the sum over `count`
    rows, so keep rate * count below 10.
    """

    count: int = TOGETHER

    def __post_init__(self) -> None:
        check.whole("together", self.count, 1)


Mode = str | Batched


def mode_named(name: str, together: int = TOGETHER) -> Mode:
    """Returns the mode of nodes, as in command line and checkpoints; ValueError for an unknown one."""
    return Batched(together) if check.choice("mode", name, MODES) == "batch" else name


@dataclass(frozen=True)
class Options:
    """The options of `--readout tree`."""

    tree: str = option(
        "huffman", "tree readout: shape; clustered needs `train factors --start counts`", choices=(*TREES, CLUSTERED)
    )
    mode: str = option(
        "deterministic", "tree readout: updates after each example, or of up to 64 at once on a GPU", choices=MODES
    )
    regrow: list[int] | None = option(
        None,
        "tree readout under a trunk: epochs after which the tree is rebuilt by similarity of the learned classes",
        type=rising,
        metavar="EPOCHS",
    )


class TreeReadout(Base):
    """A hierarchical softmax: one logistic regression at each inner node of a binary tree; a class is a leaf.

    counts  class counts; a balanced tree needs only the number of classes
    width   numbers of a hidden vector
    tree    "huffman": short paths for frequent classes, the fastest; "balanced": all paths about log2 V; or one of
            hybrid.trees, such as one in which similar classes share nodes
    mode    "deterministic": nodes are updated row by row, so row b sees the updates of earlier rows, bit-identical to a serial
            loop over rows for any number of threads; "batch", or Batched(64): rows learn together at a node, on a GPU
    batch   maximum rows per step
    backend the device of the nodes, from hybrid.backend.choose (None: the CPU). Nodes on a GPU are in its memory, and `nodes`
            is the host's copy. `best` and `scores` fetch it first and compute on the CPU, since a search branches
    optimiser  update rule of a node for an example on its path: "sgd", "row-adagrad" or "adagrad", or one with a rate, such as
            hybrid.SGD(0.05) (default: 0.025)
    biases  True: every node has a bias

    A step costs O(B D log V), best is exact. Nodes start at 0. Raises ValueError for fewer than two classes or more than 2^30,
    for a Huffman tree without counts, and for a tree of other classes.

    Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model"; Mikolov et al. 2013, arXiv:1310.4546.
    """

    kind = "tree"
    places: tuple[str, ...] = ("cpu", "cuda")
    usual_rate = 0.025
    searches_on_host = True

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        tree: "str | Tree" = "huffman",
        mode: Mode = "deterministic",
        **common: Unpack[Common],
    ):
        super().__init__(counts, width, **common)
        own = mode if isinstance(mode, Batched) else mode_named(mode)
        self.mode = "batch" if isinstance(own, Batched) else "deterministic"
        self.together = own.count if isinstance(own, Batched) else TOGETHER
        _check_classes(self.classes)
        self.nodes = sparse.table(self.classes - 1, self.width)
        self.shape = check.choice("tree", tree, TREES) if isinstance(tree, str) else GIVEN
        if self.shape == "huffman" and self.counts is None:
            raise ValueError('counts: found only the number of classes; pass one count per class, or tree="balanced"')
        if not isinstance(tree, str):
            self._hold(self._checked(tree))
        self._keep(self.nodes)
        self._prepare()

    def _prepare(self) -> None:
        """Sets the attributes derived from the tree, again after a checkpoint has filled counts or pointers."""
        self.tree = self._grown()
        self._place.do(self._make_room, self.tree)

    def _make_room(self, tree: Any) -> None:
        sizes = self.batch, self.width, tree.depth
        if self._batched:
            kernels = self.backend.tree_batch
            self._work = kernels.workspace(*sizes, self.together, np.float32)
        else:
            kernels = self.backend.tree_softmax
            self._work = kernels.workspace(*sizes, np.float32)
        self._plan = kernels.plan(tree)

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        given = self._learns(self._there), self._work, self._plan, hidden, target, weight, self._step_rate
        if self._batched:
            self.backend.tree_batch.step(grad, loss, *given, self.together)
        else:
            self.backend.tree_softmax.step(grad, loss, *given)

    @property
    def _batched(self) -> bool:
        return self.mode == "batch" and self.beside

    @property
    def online(self) -> bool:
        """True if it can learn online: on the CPU, by plain SGD."""
        return not (self.beside or self.mode == "batch" or self.biased) and self.optimiser == "sgd"

    def learn_online(self, grad: Any, loss: Any, hidden: Any, inputs: Any, target: Any, weight: Any) -> None:
        """Learns from a batch and the rows that it reads, unchecked and in any `mode`; see Base.step_online."""
        from cpu import words

        given = self._learns(self._there), self._work, self.tree, target, weight, self._step_rate
        words.tree_step(grad, loss, hidden, inputs, *given)

    def vectors(self) -> np.ndarray:
        """Returns the learned vector of each class, (V, D) float32: similar for classes that the tree treats alike.

        It is the gradient of log p(v) at typical inputs of its nodes; see cpu/tree/growth.py. Fetches the nodes of a GPU.
        """
        from cpu.tree import growth

        with self.alone:
            self.fetch()
            return growth.vectors(self._host, self.tree, trees.met(self._kept))

    def begin_with(self, vectors: np.ndarray) -> None:
        """Initialises the nodes so that the tree represents vectors (V, D) float32 of the classes; see `vectors`, Readout."""
        from cpu.tree import growth

        self._check_vectors(vectors)
        with Held(), self.alone:
            self._host.rows[...] = growth.rows_of(self.tree, vectors, trees.met(self._counted))
            self.send()

    def regrow(self, tree: "Tree", hidden: Any = None, target: Any = None, *, counts: Any = None) -> int:
        """Replaces the tree by another one over the same classes; returns the number of nodes that keep their parameters.

        tree    of hybrid.trees
        hidden  (B, D) float32, target (B,) int32: typical training examples, the more the better, on which the new tree is
                trained immediately, in steps of `batch` rows. None: new nodes start at 0
        counts  (V,) class counts, by which threads partition the nodes. None: the known ones, which a balanced tree lacks

        A node that separates the same two sets of classes keeps its bits. Later checkpoints keep the new tree. Call it between
        two ticks; hybrid.regrow does all of it for an engine.

        Raises ValueError for an invalid tree or invalid examples; nothing is then updated.
        """
        from cpu.tree import growth

        known = None if counts is None else check.counts(counts)
        new = self._checked(tree, known)
        if hidden is None or target is None:
            hidden, target = np.empty((0, self.width), np.float32), np.empty(0, np.int32)
        self._check(hidden, target)
        with Held(), self.alone:
            self.fetch()
            made, count = growth.kept(self._host, self.tree, new)
            for ours, theirs in zip(self._host, made, strict=True):
                if ours is not None:
                    ours[...] = theirs
            self._hold(new, known)
            self._prepare()
            self.send()
            for part in self._parts(hidden):
                self.step(np.empty_like(hidden[part]), hidden[part], target[part])
            return count

    def add_classes(self, counts: Any) -> None:
        """Adds n classes with ids V to V + n - 1, and keeps all learned parameters.

        counts  (n,) numbers of at least 0: expected counts, relative to those of the existing classes

        A Huffman tree of the new classes becomes the sibling of the rarest class (of those without a long path), under a new
        node. New nodes start at 0: that class keeps half of its probability, and the new ones share the other half. The
        probabilities of all other classes are bit-identical. Later checkpoints keep the tree. Call it between two ticks; a run
        in flight continues with its feed, and the engine then accepts feeds of V + n classes.

        Raises ValueError for invalid counts, more than 2^30 classes and a tree of a mixture; nothing is then updated.
        """
        from cpu.tree import growth

        if self.mixed:
            raise ValueError(
                "add_classes: found a tree of a mixture, expected one outside a mixture; add classes, then mix"
            )
        more = check.counts(counts, more=True)
        _check_classes(self.classes + more.size)
        with Held(), self.alone:
            self.fetch()
            every = np.concatenate([self._kept, more])
            made = growth.grown(self.tree, self._kept, more, trees.deepest(every.size))
            tree, nodes = trees.checked(made.leaf_up, made.node_up, every), sparse.table(every.size - 1, self.width)
            before, self.nodes = self._host, nodes
            self.classes, self.counts, self.shape = every.size, every, GIVEN
            self._keep(self.nodes)
            for ours, theirs in zip(self._host, before, strict=True):
                if ours is not None:
                    ours[made.place] = theirs
            self._hold(tree)
            self._prepare()
            self.send()

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the nodes (V - 1, D), their optimiser state, and the tree: counts (V,), pointers (V,), (V - 1,), or both."""
        self.fetch()
        counts = {} if self.shape == "balanced" else {"counts": self.counts}
        pointers = self._ups if self.shape == GIVEN else {}
        return {"nodes": self.nodes} | counts | pointers | sparse.beside(self._host)

    def describe(self) -> dict[str, Any]:
        together = {"together": self.together} if self.mode == "batch" else {}
        return super().describe() | {"tree": self.shape} | {"mode": self.mode} | together

    def restore(self, state: dict[str, Any]) -> None:
        if self.shape != "balanced":
            check.counts(self.counts)
        super().restore(state)
        self._prepare()

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self.backend.tree_softmax.log_prob(out, self._there, self._plan, hidden, target)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> None:
        from cpu import tree_softmax

        tree_softmax.best(ids, log_probs, self._host, self.tree, hidden, left_out)

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu.output import scores

        scores.tree(out, self._host, self.tree, hidden)

    def _checked(self, tree: Any, counts: Any = None) -> "Tree":
        from cpu.tree.tree import Tree

        if not isinstance(tree, Tree):
            found = type(tree).__name__
            raise ValueError(f"tree: found {found}, expected one of {', '.join(TREES)}, or a tree of hybrid.trees")
        if tree.leaf_up.size != self.classes:
            raise ValueError(f"tree: found {tree.leaf_up.size} leaves, expected {self.classes}, one per class")
        return trees.checked(tree.leaf_up, tree.node_up, self.counts if counts is None else counts)

    def _hold(self, tree: "Tree", counts: np.ndarray | None = None) -> None:
        """Marks the tree as one that a checkpoint keeps, with the counts by which threads partition its nodes."""
        self.counts, self.shape = self._kept if counts is None else counts, GIVEN
        self._ups = {"leaf_up": tree.leaf_up, "node_up": tree.node_up}

    def _grown(self) -> "Tree":
        if self.shape == GIVEN:
            return trees.checked(self._ups["leaf_up"], self._ups["node_up"], self.counts)
        return trees.huffman(self.counts) if self.shape == "huffman" else trees.balanced(self.classes)

    @property
    def _counted(self) -> np.ndarray:
        return np.ones(self.classes) if self.counts is None else np.asarray(self.counts)

    @property
    def _kept(self) -> np.ndarray:
        """The counts that a loaded readout would have: a checkpoint of a balanced tree has none."""
        return np.ones(self.classes) if self.shape == "balanced" else self._counted


def _check_classes(classes: int) -> None:
    if classes > MOST:
        raise ValueError(f"classes: found {classes}, expected at most {MOST}: a tree names its turns in int32")


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> TreeReadout:
    """Returns the readout from command-line options; see hybrid/readout/__init__.py. Clusters start balanced."""
    own = arguments(options, Options)
    del own["regrow"]
    own["mode"] = mode_named(own["mode"])
    own["tree"] = "balanced" if own["tree"] == CLUSTERED else own["tree"]
    return TreeReadout(counts, width, **sizes, **own)


def rebuild(classes: int, tree: str = "huffman", **facts: Any) -> TreeReadout:
    """Returns the readout from describe(); a tree in a checkpoint is arbitrary until it is filled in."""
    shape = trees.balanced(classes) if tree == GIVEN else tree
    own = described(facts)
    mode = mode_named(own.pop("mode"), own.pop("together", TOGETHER))
    return TreeReadout(np.ones(classes), tree=shape, mode=mode, **own)


def least(classes: int, width: int, **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sparse.numbers(classes - 1, width, **facts)
