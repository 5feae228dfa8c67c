"""The tree of a readout is exchanged, or grown, while what was learned is carried over."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import check, sparse, trees
from ...alone import Alone
from ...contract import Learned
from ...interrupt import Held
from .shape import GIVEN, Shaped, check_number

if TYPE_CHECKING:
    from cpu.tree import Tree


class Growing(Shaped):
    """A tree that changes. The readout has its nodes in `_host`, and:

    _prepare  make what follows from `_grown()`
    _place_nodes  keep other nodes, without what was learned beside the old ones
    step, fetch, send, moves, _check, _check_vectors, _parts  of Base
    """

    width: int
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
