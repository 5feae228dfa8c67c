"""A split tree: its first nodes, the top, learn on a GPU as dense products, the other nodes, the tail, on the CPU."""

from typing import Any

import numpy as np

from .. import backend as backends
from .. import sparse
from .base import Pairs, TopAndTail
from .tree import Mode, Split, TreeReadout
from .tree import least as least
from .tree import rebuild as rebuild


class SplitTreeReadout(TopAndTail, TreeReadout):
    """A TreeReadout whose first `split` nodes, breadth first, are on the backend's device and all others on the CPU.

    The top learns by the batch, so it needs a smaller rate or batch than the tail, see `TreeReadout`. In a tick these are two
    stages, "readout" and then "top".

    Raises ValueError for a mode that is no Split, and the errors of TreeReadout.
    """

    kind = "split_tree"

    def __init__(self, counts: Any, width: int, *, mode: Mode, **settings: Any):
        if not isinstance(mode, Split):
            raise ValueError(f"mode: found {mode!r}, expected a Split; TreeReadout takes all")
        super().__init__(counts, width, mode=mode, **settings)

    def _place_nodes(self) -> None:
        self._cpu = backends.choose("cpu").tree_softmax
        self._host = sparse.kept(self.nodes, self.optimiser, self.biased)
        self._top_host = sparse.first(self._host, self.split)
        self._there = sparse.mirrored(self._top_host, self.backend.device)

    def _prepare(self) -> None:
        from cpu.tree.tree import split

        self.tree = self._grown()
        upper, self._tail = split(self.tree, self.split)
        self._tail_work = self._cpu.workspace(self.batch, self.width, self.tree.depth, np.float32)
        self._top_place.do(self._make_room, upper)

    def _make_room(self, upper: Any) -> None:
        self._plan = self.backend.tree_softmax.plan(upper)
        self._work = self.backend.split.workspace(self.batch, self.width, self.split, np.float32)

    def learn_top(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        top = self._learns(self._there)
        self.backend.split.step(grad, loss, top, self._work, self._plan, hidden, target, weight, self._step_rate)

    def _learn_tail(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        given = self._learns(self._host), self._tail_work, self._tail, hidden, target, weight, self._step_rate
        self._cpu.step(grad, loss, *given)

    def _tail_log_prob(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        self._cpu.log_prob(out, self._host, self._tail, hidden, target)

    def _top_log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        self.backend.tree_softmax.log_prob(out, self._there, self._plan, hidden, target)

    def _pairs(self) -> Pairs:
        return sparse.pairs(self._top_host, self._there)
