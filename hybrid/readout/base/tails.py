"""What stands below the head of a readout: how likely a class is within its cluster, learned on the CPU.

rows            how many rows of parameters there are, for V classes, of which H are alone, and K clusters: see `rows_of`
make_room       scratch for so many examples of a width, made once
step, log_prob  of examples; a class that is alone costs nothing
known, carry    what the rows say of each class, and rows that say it of other clusters
best            the k most likely classes, from the log-probabilities (B, H + K) of the head's slots
scores          the log-probability of every class given its cluster
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cpu.excluded import Excluded


class Trees:
    """A binary tree in each cluster: a node a row.

    cluster  (V,) int32, -1 for a class alone
    counts   (V,) how often each class is met: the trees are Huffman's
    """

    def __init__(self, cluster: np.ndarray, counts: np.ndarray):
        from cpu import cluster_trees

        self._forest = cluster_trees.huffman(cluster, counts)
        self._alone = np.flatnonzero(cluster < 0).astype(np.int32)
        self._pathless = np.flatnonzero(self._forest.tree.leaf_up < 0)

    def known(self, head: Any, tail: Any, slot: np.ndarray, masses: np.ndarray) -> Any:
        """What all rows say of each class, see cpu/head_carry.py."""
        from cpu import head_carry

        return head_carry.of_trees(head, tail, slot, self._forest, masses)

    def carry(self, known: Any, before: Any, head: Any, tail: Any, masses: np.ndarray) -> None:
        """Write what is known into the rows of the clusters' slots and the nodes, which were those of other trees."""
        from cpu import head_carry

        head_carry.into_trees(head, tail, len(self._alone), known, self._forest, masses)
        visits = [head_carry.visits(tails._forest, masses) for tails in (before, self)]
        for squares in (tail.squares, tail.bias_squares):
            head_carry.spread(squares, *visits)

    @staticmethod
    def rows_of(classes: int, head: int, clusters: int) -> int:
        """A cluster has one node fewer than classes."""
        return classes - head - clusters

    def make_room(self, batch: int, width: int) -> None:
        """Scratch of a step."""
        from cpu import tree_softmax

        self._work = tree_softmax.workspace(batch, width, self._forest.tree.depth, np.float32)

    def step(
        self,
        grad: np.ndarray,
        loss: np.ndarray,
        learned: Any,
        hidden: np.ndarray,
        target: np.ndarray,
        weight: Any,
        rate: float,
    ) -> None:
        """Write grad (B, D) and loss (B,), move the nodes."""
        from cpu import tree_softmax

        tree_softmax.step(grad, loss, learned, self._work, self._forest.tree, hidden, target, weight, rate)

    def log_prob(self, out: np.ndarray, learned: Any, hidden: np.ndarray, target: np.ndarray) -> None:
        """out[b] = log p(target[b] | its cluster, hidden[b])."""
        from cpu import tree_softmax

        tree_softmax.log_prob(out, learned, self._forest.tree, hidden, target)

    def best(
        self,
        ids: np.ndarray,
        log_probs: np.ndarray,
        learned: Any,
        slots: np.ndarray,
        hidden: np.ndarray,
        left_out: "Excluded",
    ) -> None:
        """Write the k most likely classes (B, k)."""
        from cpu import head_search

        head_search.best(ids, log_probs, learned, self._forest, slots, self._alone, hidden, left_out)

    def scores(self, out: np.ndarray, learned: Any, hidden: np.ndarray) -> None:
        """out[b, v] = log p(v | its cluster, hidden[b])."""
        from cpu import scores

        scores.tree(out, learned, self._forest.tree, hidden)
        out[:, self._pathless] = 0


class Softmaxes:
    """A softmax in each cluster: a class a row.

    Arguments as of Trees; only `cluster` is used: rows of a cluster move once a step.
    """

    def __init__(self, cluster: np.ndarray, counts: np.ndarray):
        from cpu import cluster_softmax

        self._plan = cluster_softmax.plan(cluster)
        self._alone = np.flatnonzero(cluster < 0).astype(np.int32)

    def known(self, head: Any, tail: Any, slot: np.ndarray, masses: np.ndarray) -> Any:
        """What all rows say of each class, see cpu/head_carry.py."""
        from cpu import head_carry

        return head_carry.of_softmaxes(head, tail, slot, self._plan, masses)

    def carry(self, known: Any, before: Any, head: Any, tail: Any, masses: np.ndarray) -> None:
        """Write what is known into the rows of the clusters' slots and of the classes; squares go with their class."""
        from cpu import head_carry

        head_carry.into_softmaxes(head, tail, len(self._alone), known, self._plan, masses)
        for squares in (tail.squares, tail.bias_squares):
            if squares is not None:
                squares[:] = squares[before._plan.row[self._plan.classes]]

    @staticmethod
    def rows_of(classes: int, head: int, clusters: int) -> int:
        """Every class of a cluster has one."""
        return classes - head

    def make_room(self, batch: int, width: int) -> None:
        """Scratch of a step."""
        from cpu import cluster_softmax

        self._work = cluster_softmax.workspace(batch, width, self._plan, np.float32)

    def step(
        self,
        grad: np.ndarray,
        loss: np.ndarray,
        learned: Any,
        hidden: np.ndarray,
        target: np.ndarray,
        weight: Any,
        rate: float,
    ) -> None:
        """Write grad (B, D) and loss (B,), move the rows of the clusters that are met."""
        from cpu import cluster_softmax

        cluster_softmax.step(grad, loss, learned, self._work, self._plan, hidden, target, weight, rate)

    def log_prob(self, out: np.ndarray, learned: Any, hidden: np.ndarray, target: np.ndarray) -> None:
        """out[b] = log p(target[b] | its cluster, hidden[b])."""
        from cpu import cluster_softmax

        cluster_softmax.log_prob(out, learned, self._work, self._plan, hidden, target)

    def best(
        self,
        ids: np.ndarray,
        log_probs: np.ndarray,
        learned: Any,
        slots: np.ndarray,
        hidden: np.ndarray,
        left_out: "Excluded",
    ) -> None:
        """Write the k most likely classes (B, k)."""
        from cpu import cluster_softmax_search

        given = learned, self._plan, slots, self._alone, hidden, left_out
        cluster_softmax_search.best(ids, log_probs, *given)

    def scores(self, out: np.ndarray, learned: Any, hidden: np.ndarray) -> None:
        """out[b, v] = log p(v | its cluster, hidden[b])."""
        from cpu import cluster_softmax_search

        cluster_softmax_search.scores(out, learned, self._plan, hidden)


TAILS: dict[str, type[Trees] | type[Softmaxes]] = {"tree": Trees, "softmax": Softmaxes}
