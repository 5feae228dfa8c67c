"""Which tree a tree readout has: named, or given as pointers to parents."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check, trees

if TYPE_CHECKING:
    from cpu.tree import Tree

TREES = ("huffman", "balanced")
GIVEN = "given"  # the name of all others, which do not follow from counts: a checkpoint has their pointers
MOST = 2**30  # classes: 2 * parent + turn is an int32


class Shaped:
    """The shape of the tree of a readout, which has `counts` and `classes`.

    shape  "huffman", "balanced" or "given"
    """

    counts: Any
    classes: int

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
