"""Which tree a tree readout has; it is exchanged, or grown, while what was learned is carried over."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check, sparse, trees
from ...alone import Alone
from ...contract import Learned
from ...interrupt import Held

if TYPE_CHECKING:
    from cpu.tree import Tree

TREES = ("huffman", "balanced")
GIVEN = "given"  # the name of all others, which do not follow from counts: a checkpoint has their pointers
MOST = 2**30  # classes: 2 * parent + turn is an int32


class Growing:
    """The tree of a readout: named, or given as pointers to parents; it may change. The readout has its nodes in `_host`, and:

    shape  "huffman", "balanced" or "given"

    _prepare  make what follows from `_grown()`
    _place_nodes  keep other nodes, without what was learned beside the old ones
    step, fetch, send, moves, _check, _check_vectors, _parts  of Base
    """

    width: int
    counts: Any
    classes: int
    shape: str
    alone: Alone
    backend: Any
    tree: "Tree"
    nodes: np.ndarray
    mixed: bool
    step: Any
    fetch: Any
    send: Any
    _host: Learned
    _check: Any
    _check_vectors: Any
    _parts: Any

    def _prepare(self) -> None:
        raise NotImplementedError

    def _place_nodes(self) -> None:
        raise NotImplementedError

    def vectors(self) -> np.ndarray:
        """What the tree has learned of each class, (V, D) float32: alike for classes that it treats alike.

        The gradient of log p(v) where its nodes have mostly been met; see cpu/tree_carry.py. Fetches the nodes of a GPU.
        """
        from cpu import tree_carry

        with self.alone:
            self.fetch()
            return tree_carry.vectors(self._host, self.tree, trees.met(self._kept))

    def begin_with(self, vectors: np.ndarray) -> None:
        """Give nodes the rows by which the tree knows vectors (V, D) float32 of the classes, see `vectors`; see Readout."""
        from cpu import tree_carry

        self._check_vectors(vectors)
        with Held(), self.alone:
            self._host.rows[...] = tree_carry.rows_of(self.tree, vectors, trees.met(self._counted))
            self.send()

    def regrow(
        self, tree: "Tree", hidden: np.ndarray | None = None, target: np.ndarray | None = None, *, counts: Any = None
    ) -> int:
        """Go on with another tree over the same classes; returns how many nodes keep what they have learned.

        tree    of hybrid.trees
        hidden  (B, D) float32, target (B,) int32: examples such as the readout meets, which the tree learns from at once,
                in steps of `batch` rows; the more the better. None: new nodes begin at 0
        counts  (V,) how often each class is met, by which threads share the nodes. None: as is known; of a balanced tree
                nothing is, since a checkpoint of it has no counts

        A node that parts the same two sets of classes keeps its numbers, to the bit. A checkpoint keeps the tree from here on.
        Call it between two ticks; hybrid.regrow does all of it for an engine.

        Raises ValueError for another tree or other examples; then nothing has moved.
        """
        from cpu import tree_carry

        told = None if counts is None else check.counts(counts)
        new = self._given(tree, told)
        if hidden is None or target is None:
            hidden, target = np.empty((0, self.width), np.float32), np.empty(0, np.int32)
        self._check(hidden, target)
        with Held(), self.alone:
            self.fetch()
            made, count = tree_carry.kept(self._host, self.tree, new)
            for ours, theirs in zip(self._host, made, strict=True):
                if ours is not None:
                    ours[...] = theirs
            self._hold(new, told)
            self._prepare()
            self.send()
            for part in self._parts(hidden):
                self.step(np.empty_like(hidden[part]), hidden[part], target[part])
            return count

    def add_classes(self, counts: Any) -> None:
        """Go on with n more classes, whose ids are V to V + n - 1, and forget nothing.

        counts  (n,) numbers of at least 0: how often each is expected, against the counts of the classes that are there

        A Huffman tree of the new classes stands beside the rarest class (of those without a long path), under a new node. New
        nodes begin at 0: that class keeps half of its probability, and the new ones share the other half. The probabilities
        of all other classes are the same, to the bit. A checkpoint keeps the tree from here on. Call it between two ticks;
        a run under way goes on with its feed, an engine then takes feeds of V + n classes.

        Raises ValueError for other counts, for more than 2^30 classes in all and for a tree of a mixture;
        then nothing has moved.
        """
        from cpu import tree_growth

        if self.mixed:
            raise ValueError(
                "add_classes: found a tree of a mixture, expected one that stands alone; add classes, then mix"
            )

        more = check.counts(counts, more=True)
        check_number(self.classes + more.size)
        with Held(), self.alone:
            self.fetch()
            every = np.concatenate([self._kept, more])
            made = tree_growth.grown(self.tree, self._kept, more, trees.deepest(every.size))
            tree, nodes = trees.checked(made.leaf_up, made.node_up, every), sparse.table(every.size - 1, self.width)
            before, self.nodes = self._host, nodes
            self.classes, self.counts, self.shape = every.size, every, GIVEN
            self._place_nodes()
            for ours, theirs in zip(self._host, before, strict=True):
                if ours is not None:
                    ours[made.place] = theirs
            self._hold(tree)
            self._prepare()
            self.send()

    def _take_shape(self, tree: Any) -> None:
        """The tree that is named or given; see TreeReadout."""
        given = not isinstance(tree, str)
        self.shape = GIVEN if given else check.choice("tree", tree, TREES)
        if self.shape == "huffman" and self.counts is None:
            raise ValueError(
                'counts: found only how many classes there are; pass one count a class, or tree="balanced"'
            )
        if given:
            self._hold(self._given(tree))

    def _given(self, tree: Any, counts: Any = None) -> "Tree":
        from cpu.tree import Tree

        if not isinstance(tree, Tree):
            raise ValueError(
                f"tree: found {type(tree).__name__}, expected one of {', '.join(TREES)}, or a tree of hybrid.trees"
            )
        if tree.leaf_up.size != self.classes:
            raise ValueError(f"tree: found {tree.leaf_up.size} leaves, expected {self.classes}, one a class")
        return trees.checked(tree.leaf_up, tree.node_up, self.counts if counts is None else counts)

    def _hold(self, tree: "Tree", counts: np.ndarray | None = None) -> None:
        """From here on it is a tree that a checkpoint keeps, with the counts by which threads share its nodes."""
        self.counts, self.shape = self._kept if counts is None else counts, GIVEN
        self._ups = {"leaf_up": tree.leaf_up, "node_up": tree.node_up}

    def _grown(self) -> "Tree":
        """The tree of the counts, or the pointers, as they are."""
        if self.shape == GIVEN:
            return trees.checked(self._ups["leaf_up"], self._ups["node_up"], self.counts)
        return trees.huffman(self.counts) if self.shape == "huffman" else trees.balanced(self.classes)

    def _shape_arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps of the tree: counts, if it follows from them, or they from it; its pointers, if not."""
        counts = {} if self.shape == "balanced" else {"counts": self.counts}
        return counts | (self._ups if self.shape == GIVEN else {})

    @property
    def _counted(self) -> np.ndarray:
        found: np.ndarray = np.ones(self.classes) if self.counts is None else self.counts
        return found

    @property
    def _kept(self) -> np.ndarray:
        """The counts as a readout has them that was loaded: a checkpoint of a balanced tree has none."""
        return np.ones(self.classes) if self.shape == "balanced" else self._counted


def check_number(classes: int) -> None:
    """ValueError for more classes than a tree can have."""
    if classes > MOST:
        raise ValueError(f"classes: found {classes}, expected at most {MOST}: a tree names its turns in int32")
