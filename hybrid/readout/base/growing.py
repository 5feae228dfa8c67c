"""The shape of a tree readout: named, or given, and exchanged for another one while what was learned is carried over."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check, mirror, sparse, trees
from ...alone import Alone
from ...contract import Learned
from ...interrupt import Held

if TYPE_CHECKING:
    from cpu.tree import Tree

TREES = ("huffman", "balanced")
GIVEN = "given"  # the name of all others, which do not follow from counts: a checkpoint has their pointers


class Growing:
    """Which tree a readout has. It has `counts`, `classes`, its nodes in `_host`, and:

    _prepare  make what follows from `_grown()`
    step, _check, _check_vectors, _parts  of Base

    shape  "huffman", "balanced" or "given"
    """

    counts: Any
    classes: int
    width: int
    alone: Alone
    backend: Any
    tree: "Tree"
    step: Any
    _host: Learned
    _check: Any
    _check_vectors: Any
    _parts: Any

    def _prepare(self) -> None:
        raise NotImplementedError

    def _pairs(self) -> Any:
        raise NotImplementedError

    def _take_shape(self, tree: Any) -> None:
        """The tree that is named or given; see TreeReadout."""
        given = not isinstance(tree, str)
        self.shape: str = GIVEN if given else check.choice("tree", tree, TREES)
        if self.shape == "huffman" and self.counts is None:
            raise ValueError(
                'counts: found only how many classes there are; pass one count a class, or tree="balanced"'
            )
        if given:
            self._hold(self._given(tree))

    def _given(self, tree: Any) -> "Tree":
        from cpu.tree import Tree

        if not isinstance(tree, Tree):
            raise ValueError(
                f"tree: found {type(tree).__name__}, expected one of {', '.join(TREES)}, or a tree of hybrid.trees"
            )
        if tree.leaf_up.size != self.classes:
            raise ValueError(f"tree: found {tree.leaf_up.size} leaves, expected {self.classes}, one a class")
        return trees.checked(tree.leaf_up, tree.node_up, self.counts)

    def _hold(self, tree: "Tree") -> None:
        """From here on it is a tree that a checkpoint keeps, with the counts by which threads share its nodes."""
        self.shape, self.counts = GIVEN, self._counted
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

    def vectors(self) -> np.ndarray:
        """What the tree has learned of each class, (V, D) float32: alike for classes that it treats alike.

        The gradient of log p(v) where its nodes have mostly been met; see cpu/tree_carry.py. Fetches the nodes of a GPU.
        """
        from cpu import tree_carry

        with self.alone:
            mirror.fetch(self.backend.device, self._pairs())
            return tree_carry.vectors(self._wide, self.tree, trees.met(self._counted))

    def begin_with(self, vectors: np.ndarray) -> None:
        """Give nodes the rows by which the tree knows vectors (V, D) float32 of the classes, see `vectors`; see Readout."""
        from cpu import halves, tree_carry

        self._check_vectors(vectors)
        with Held(), self.alone:
            halves.narrow(self._host.rows, tree_carry.rows_of(self.tree, vectors, trees.met(self._counted)))
            mirror.send(self.backend.device, self._pairs())

    def regrow(self, tree: "Tree", hidden: np.ndarray | None = None, target: np.ndarray | None = None) -> None:
        """Go on with another tree over the same classes.

        tree    of hybrid.trees
        hidden  (B, D) float32, target (B,) int32: examples such as the readout meets, which the tree learns from at once,
                in steps of `batch` rows; the more the better. None: new nodes begin at 0

        A node that parts the same two sets of classes keeps its numbers, to the bit. A checkpoint keeps the tree from here on.
        Call it between two ticks.

        Raises ValueError for another tree or other examples; then nothing has moved.
        """
        from cpu import halves, tree_carry

        new = self._given(tree)
        if hidden is None or target is None:
            hidden, target = np.empty((0, self.width), np.float32), np.empty(0, np.int32)
        self._check(hidden, target)
        with Held(), self.alone:
            mirror.fetch(self.backend.device, self._pairs())
            made = tree_carry.kept(self._wide, self.tree, new)
            for ours, theirs in zip(self._host, made, strict=True):
                if ours is not None:
                    halves.narrow(ours, theirs)
            self._hold(new)
            self._prepare()
            mirror.send(self.backend.device, self._pairs())
            for part in self._parts(hidden):
                self.step(np.empty_like(hidden[part]), hidden[part], target[part])

    @property
    def _wide(self) -> Learned:
        """The nodes in float32: as they are, or a copy of those in 16 bits."""
        return self._host._replace(rows=sparse.numbers_of(self._host.rows))

    @property
    def _counted(self) -> np.ndarray:
        found: np.ndarray = np.ones(self.classes) if self.counts is None else self.counts
        return found
