"""The shape of a tree readout: named, given, or rebuilt while the readout learns, by which classes are alike."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check, mirror, trees
from ...alone import Alone
from ...contract import Learned
from ...interrupt import Held

if TYPE_CHECKING:
    from cpu.tree import Tree

TREES = ("huffman", "balanced", "clustered")
KEPT = ("clustered", "given")  # shapes that do not follow from counts: a checkpoint has their pointers
ALIKE = ("rows", "paths")
EARLY = 0.5  # of the rate: a tree is not rebuilt by itself once the rates are lower, new nodes would not learn enough


class Growing:
    """Which tree a readout has. It has `counts`, `classes`, `seed`, its nodes in `_host`, and:

    _prepare  make what follows from `_grown()`

    shape  "huffman", "balanced", "clustered" or "given"
    every  examples after which the tree is rebuilt, again and again; 0: never
    alike  by what
    met    examples learned from
    """

    counts: Any
    classes: int
    seed: int
    width: int
    rate_scale: float
    alone: Alone
    backend: Any
    split: int
    tree: "Tree"
    _host: Learned

    def _prepare(self) -> None:
        raise NotImplementedError

    def _pairs(self) -> Any:
        raise NotImplementedError

    def _take_shape(self, tree: Any, regrow: int | None, alike: str) -> None:
        """The first tree, and when another takes its place; see TreeReadout."""
        given = not isinstance(tree, str)
        self.shape: str = "given" if given else check.choice("tree", tree, TREES)
        if self.shape == "huffman" and self.counts is None:
            raise ValueError(
                'counts: found only how many classes there are; pass one count a class, or tree="balanced"'
            )
        self.alike, self.met = check.choice("alike", alike, ALIKE), 0
        self._rows: np.ndarray | None = None
        self.every = self._interval(regrow)
        if self.every:
            self._check_rebuilt(regrow)
            self.shape = "clustered"
        if given or self.shape == "clustered":
            self._keep_counts()
            self._hold(self._given(tree) if given else trees.huffman(self.counts))

    def _interval(self, regrow: int | None) -> int:
        if regrow is not None:
            return check.whole("regrow", regrow, 0)
        if self.shape != "clustered":
            return 0
        return self.classes if self.counts is None else max(1, int(self.counts.sum()))

    def _check_rebuilt(self, regrow: int | None) -> None:
        if self.shape in ("huffman", "balanced"):
            raise ValueError(f"regrow: found {regrow} for a {self.shape} tree, expected a clustered one; leave it out")
        if self.split or not self.backend.device.host_memory:
            where = "cut between two places" if self.split else f"on {self.backend.name}"
            raise ValueError(
                f"regrow: found a tree {where}, expected one on the CPU: only there it is rebuilt by itself; leave it out and "
                "call regrow(tree)"
            )

    def _given(self, tree: Any) -> "Tree":
        from cpu.tree import Tree

        if not isinstance(tree, Tree):
            raise ValueError(
                f"tree: found {type(tree).__name__}, expected one of {', '.join(TREES)}, or a tree of hybrid.trees"
            )
        if tree.leaf_up.size != self.classes:
            raise ValueError(f"tree: found {tree.leaf_up.size} leaves, expected {self.classes}, one a class")
        return trees.checked(tree.leaf_up, tree.node_up, self.counts)

    def _keep_counts(self) -> None:
        self.counts = np.ones(self.classes) if self.counts is None else self.counts

    def _hold(self, tree: "Tree") -> None:
        """From here on it is a tree that a checkpoint keeps."""
        self._ups = {"leaf_up": tree.leaf_up, "node_up": tree.node_up}

    def _grown(self) -> "Tree":
        """The tree of the counts, or the pointers, as they are."""
        if self.shape in KEPT:
            return trees.checked(self._ups["leaf_up"], self._ups["node_up"], self.counts)
        return trees.huffman(self.counts) if self.shape == "huffman" else trees.balanced(self.classes)

    def _shape_arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps of the tree: counts, if it follows from them, or they from it; its pointers, if not."""
        counts = {} if self.shape == "balanced" else {"counts": self.counts}
        return counts | (self._ups if self.shape in KEPT else {})

    def _shape_facts(self) -> dict[str, Any]:
        return {"tree": self.shape} | ({"regrow": self.every, "alike": self.alike} if self.every else {})

    def take_rows(self, rows: np.ndarray | None) -> None:
        """Take a view of an engine's input rows, by which classes are alike; None: it has none, or not on the CPU.

        Raises ValueError where the tree is to be rebuilt by rows that there are not.
        """
        if not (self.every and self.alike == "rows"):
            return
        if rows is None or len(rows) < self.classes:
            found = "none" if rows is None else str(len(rows))
            raise ValueError(
                f"input rows on the CPU: found {found}, expected one a class, {self.classes}: by them the tree is rebuilt; "
                'alike="paths" (--alike paths) needs none'
            )
        self._rows = rows[: self.classes]

    def _count(self, hidden: np.ndarray) -> None:
        """The tree is rebuilt where the number of examples passes a multiple of `every`, and rates are high enough."""
        before, self.met = self.met, self.met + len(hidden)
        if before // self.every < self.met // self.every and self.rate_scale >= EARLY:
            alike = self.vectors() if self._rows is None else self._rows
            self.regrow(trees.clustered(alike, self.counts, seed=self.seed), hidden)

    def _check_rows(self) -> None:
        if self.every and self.alike == "rows" and self._rows is None:
            raise ValueError('alike: found "rows" without an engine, whose rows they are; expected "paths"')

    def vectors(self) -> np.ndarray:
        """What the tree has learned of each class, (V, D) float32: alike for classes that it treats alike.

        The gradient of log p(v) where its nodes have mostly been met; see cpu/tree_carry.py. Fetches the nodes of a GPU.
        """
        from cpu import tree_carry

        with self.alone:
            mirror.fetch(self.backend.device, self._pairs())
            return tree_carry.vectors(self._host, self.tree, trees.met(self._counted))

    def regrow(self, tree: "Tree", hidden: np.ndarray) -> None:
        """Go on with another tree over the same classes; what the nodes have learned is carried over.

        tree    of hybrid.trees
        hidden  (B, D) float32, B at least 1: hidden vectors such as the readout meets, better hundreds than a few

        A node that parts the same two sets of classes keeps its numbers, to the bit. Another gets the difference of the means
        of `vectors` over its two sets, what makes it right on average over `hidden`, and the squares of an average node that
        is met as often. A checkpoint keeps the tree from here on. Call it between two ticks.

        Raises ValueError for another tree or other vectors; then nothing has moved.
        """
        from cpu import tree_carry

        new = self._given(tree)
        check.array("hidden", hidden, (None, self.width), np.float32)
        check.finite("hidden", hidden)
        if not len(hidden):
            raise ValueError("hidden: found no vectors, expected some, of which the new nodes take the average")
        with Held(), self.alone:
            mirror.fetch(self.backend.device, self._pairs())
            made = tree_carry.carried(self._host, self.tree, new, trees.met(self._counted), hidden)
            for ours, theirs in zip(self._host, made, strict=True):
                if ours is not None:
                    np.copyto(ours, theirs)
            self._keep_counts()
            self._hold(new)
            self.shape = self.shape if self.shape in KEPT else "given"
            self._prepare()
            mirror.send(self.backend.device, self._pairs())

    @property
    def _counted(self) -> np.ndarray:
        found: np.ndarray = np.ones(self.classes) if self.counts is None else self.counts
        return found
