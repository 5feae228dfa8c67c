"""A tree readout in shards: each rank has the nodes of some owners, and examples go to all ranks that their paths meet."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, sparse, trees
from ..contract import Learned
from ..engine.slot import Slot
from ..interrupt import Held
from ..ranks.group import Group
from ..readout.base import Base
from ..readout.base.owners import MOST_OWNERS
from ..readout.base.owners import OWNERS as USUAL_OWNERS
from ..readout.base.shape import Shaped, check_number
from ..readout.base.stages import stepped
from .refused import check_settings, refuse_copy
from .routes import Shard, even
from .saved import Spread

if TYPE_CHECKING:
    from cpu.excluded import Excluded
    from cpu.tree import Tree

OWNERS = 16  # for Zipf's targets and 1 M classes no rank of four then has more than 27 % of the nodes; of 4 owners one has 40 %
ROOM = 2**26  # bytes of the scores of all nodes, which a search has at once


class ShardedTree(Base, Shaped):
    """A TreeReadout whose nodes are shared out to ranks, for more classes than one rank has room for.

    group   the ranks that share it: they make the same calls in the same order
    owners  of the nodes, each of them on one rank, which may have several: at least as many as ranks
    counts, width, tree, batch, rate, backend, optimiser, biases  of TreeReadout; batch: of all ranks together

    All ranks make the same calls, and get the same answers: those of a TreeReadout with as many owners, bit for bit, in the
    mode "deterministic". `step` and `log_prob` also take what each rank has alone: rank r knows all targets, and has the hidden
    vectors of the examples example_at[r] to example_at[r + 1], (size + 1,) int64. The shape of the tree is on every rank, 29
    bytes a class with counts. A search asks for the scores of all nodes, 4 bytes a class and example.

    Raises ValueError for what TreeReadout refuses, fewer owners than ranks, nodes on a GPU.
    """

    kind = "tree"
    sharded = True

    def __init__(
        self,
        group: Group,
        counts: Any,
        width: int,
        *,
        tree: "str | Tree" = "huffman",
        owners: int = OWNERS,
        batch: int = 1024,
        rate: float = 0.025,
        seed: int = 0,
        backend: Any = None,
        optimiser: str = "sgd",
        biases: bool = False,
    ):
        check_settings("readout", {"backend": backend})
        given = {"batch": batch, "rate": rate, "seed": seed, "backend": backend}
        super().__init__(counts, width, optimiser=optimiser, biases=biases, **given)
        check_number(self.classes)
        self.group, self.shard = group, Shard(group.rank, group.size)
        self.owners = check.whole("owners", owners, max(2, group.size), MOST_OWNERS)
        if self.owners % 2:
            raise ValueError(f"owners: found {self.owners}, expected an even number, as of a TreeReadout")
        self._take_shape(tree)
        self._deal()
        self.nodes = sparse.table(self.part.nodes.size, self.width)
        self._keep(self.nodes)

    def _deal(self) -> None:
        """Which owners each rank has, and what this rank needs to learn."""
        from cpu import logistic_rows, tree_shard

        self.tree = trees.owned(self._grown(), self._kept, self.owners)
        self.rank_of = tree_shard.dealt(self.tree, self._kept, self.owners, self.group.size)
        self.group.share(self.rank_of)  # processors of another kind may round otherwise
        self.part = tree_shard.part(self.tree, self.rank_of, self.group.rank)
        sizes = self.batch, self.width, self.tree.depth
        self._work = logistic_rows.workspace(*sizes, np.float32, max(1, self.part.owners.size))

    def step(
        self,
        grad: np.ndarray,
        hidden: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        example_at: np.ndarray | None = None,
    ) -> float:
        """Learn from a batch, and return the mean loss of all its examples, in nats; as in Readout.step.

        grad, hidden    (B, D) of all examples, or with example_at of those of this rank; grad is written
        target, weight  (N,) of all examples, N at most `batch`
        """
        with self.group.together():
            begin = self._check_all(hidden, target, example_at)
            check.array("grad", grad, hidden.shape, np.float32, written=True)
            if weight is not None:
                self._check_weight(weight, len(target))
            if len(target) > self.batch:
                raise ValueError(
                    f"target: found {len(target)}, expected at most {self.batch}; make it with a larger batch"
                )
        own, loss = self.shard.own(begin), self._loss[: len(target)]
        has = own if example_at is None else slice(None)
        with Held(), self.alone:
            self._learn_from(grad[has], loss[own], hidden[has], target, weight, begin)
            self.group.join_rows(loss, begin)
            if example_at is None:
                self.group.join_rows(grad, begin)
            return check.loss(loss)

    def _step(self, slot: Slot) -> None:
        """Learn from a micro-batch, whose hidden vectors one rank has."""

        def step(grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
            own, example_at = self.shard.whose(slot.rank, len(target))
            return self.step(grad[own], hidden[own], target, weight, example_at)

        self.rate_scale = slot.scale
        slot.loss = stepped(step, slot, self.batch)

    def _learn_from(
        self, grad: Any, loss: Any, hidden: Any, target: Any, weight: np.ndarray | None, example_at: np.ndarray
    ) -> None:
        from cpu import tree_shard

        from .walk import Walk

        walk, work = Walk(self.group, self.tree, self.rank_of, target, example_at), self._work
        come = walk.bring(hidden)
        tree_shard.restrict(work.entries, work.cuts, walk.paths, walk.cuts, walk.come, self.part)
        theirs = None if weight is None else weight[walk.come]
        tree_shard.learn(self._learns(self._there), work, come, theirs, self._step_rate)
        tree_shard.add(grad, loss, walk.cuts[walk.own], *walk.owners_found(work.grads, work.losses))

    def log_prob(self, hidden: np.ndarray, target: np.ndarray, example_at: np.ndarray | None = None) -> np.ndarray:
        """The log-probability of the targets of all examples, (N,) float32, any number of them; as in `step`."""
        from cpu import tree_shard

        from .walk import Walk

        with self.group.together():
            begin = self._check_all(hidden, target, example_at)
        own, out = self.shard.own(begin), np.empty(len(target), np.float32)
        with self.alone:
            walk = Walk(self.group, self.tree, self.rank_of, target, begin)
            come = walk.bring(hidden[own] if example_at is None else hidden)
            entries = np.empty((len(come), self.tree.depth + 1), np.int32)
            cuts = np.empty((len(come), self.part.owners.size + 1), np.int32)
            tree_shard.restrict(entries, cuts, walk.paths, walk.cuts, walk.come, self.part)
            scores = np.empty((len(come), self.tree.depth), np.float32)
            tree_shard.scores(scores, self._there, entries, come)
            tree_shard.log_prob(out[own], walk.paths[walk.own], walk.scores_found(scores, cuts[:, -1]))
            self.group.join_rows(out, begin)
        return out

    def parameters(self) -> dict[str, np.ndarray]:
        """The nodes of this rank, what is kept beside them, and the tree, as in TreeReadout."""
        return {"nodes": self.nodes} | self._shape_arrays() | self._beside()

    def saved(self) -> dict[str, np.ndarray | Spread]:
        """The arrays of a checkpoint of all ranks, by the names of a TreeReadout's parameters; see saved.py."""
        shape = self._shape_arrays()
        nodes = {name: array for name, array in self.parameters().items() if name not in shape}
        return shape | {
            name: Spread(
                array, self.part.nodes, self.classes - 1, lambda first, last: self.rank_of[self.tree.owner[first:last]]
            )
            for name, array in nodes.items()
        }

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs to make a TreeReadout of one rank."""
        owners = {"owners": self.owners} if self.owners != USUAL_OWNERS else {}
        return super().describe() | {"tree": self.shape, "mode": "deterministic"} | owners

    def __reduce__(self) -> tuple[Any, ...]:
        refuse_copy("readout")

    def _check_all(self, hidden: np.ndarray, target: np.ndarray, example_at: np.ndarray | None) -> np.ndarray:
        """Where the examples of each rank begin, which these arrays fit; where each has all, even shares."""
        self._check(hidden)
        check.array("target", target, (None,), np.int32)
        check.ids("target", target, self.classes)
        begin = even(len(target), self.group.size) if example_at is None else example_at
        own = self.shard.own(begin)
        wanted = len(target) if example_at is None else own.stop - own.start
        if len(hidden) != wanted:
            whose = "one a target" if example_at is None else f"the examples of rank {self.group.rank}"
            raise ValueError(f"hidden: found {len(hidden)} rows, expected {wanted}, {whose}")
        return begin

    # Questions about all classes: every rank has all hidden vectors, scores its own nodes, and searches for its share of them

    def _parts(self, hidden: np.ndarray) -> Iterator[slice]:
        step = max(1, min(self.batch, ROOM * self.group.size // (4 * self.classes)))
        return (slice(at, at + step) for at in range(0, len(hidden), step))

    def _all_scores(self, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the even shares of examples begin, and the scores of all nodes for this rank's, (B, V - 1); hidden of all."""
        from cpu import tree_shard

        begin = even(len(hidden), self.group.size)
        own = self.shard.own(begin)
        found = np.empty((len(hidden), self.part.nodes.size), np.float32)
        tree_shard.all_scores(found, self._there, hidden)
        nodes = [np.flatnonzero((self.rank_of == rank)[self.tree.owner]) for rank in range(self.group.size)]
        parts = [np.empty((own.stop - own.start, theirs.size), np.float32) for theirs in nodes]
        self.group.swap(np.split(found, begin[1:-1]), parts)
        out = np.empty((own.stop - own.start, self.classes - 1), np.float32)
        for theirs, part in zip(nodes, parts, strict=True):
            out[:, theirs] = part
        return begin, out

    def _find(
        self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded | None" = None
    ) -> None:
        from cpu import tree_search

        one = np.ones((1, 1), np.float32)  # times a score is the score
        begin, found = self._all_scores(hidden)
        for b, scores in enumerate(found, self.shard.own(begin).start):
            row = slice(b, b + 1)
            without = None if left_out is None else left_out.of(row)
            tree_search.best(ids[row], log_probs[row], Learned(scores[:, None]), self.tree, one, without)
        self.group.join_rows(ids, begin)
        self.group.join_rows(log_probs, begin)

    _best_without = _find

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        from cpu import scores

        one = np.ones((1, 1), np.float32)
        begin, found = self._all_scores(hidden)
        for b, own in enumerate(found, self.shard.own(begin).start):
            scores.tree(out[b : b + 1], Learned(own[:, None]), self.tree, one)
        self.group.join_rows(out, begin)
