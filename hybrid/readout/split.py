"""A tree cut below its first nodes: the top on the readout's device, as dense products, and the tail on the CPU."""

from typing import Any

import numpy as np

from cpu import tree as trees

from .. import backend as backends


class Split:
    """The two parts of a tree, `top` of its nodes and the rest, which learn one after the other.

    nodes    (V - 1, D) of the host: the tail learns in place, the top in a copy where the device has memory of its own
    place    of the readout, see hybrid/readout/place.py
    backend  computes the top
    """

    def __init__(self, nodes: np.ndarray, top: int, backend, place, batch: int):
        self._nodes, self._top, self._batch = nodes, top, batch
        self._backend, self._place, self._cpu = backend, place, backends.choose("cpu").tree_softmax
        self._host = nodes[:top]
        self._there = backend.device.from_host(self._host)
        self._loss = np.empty(batch, np.float32)

    def pairs(self) -> list[tuple[np.ndarray, Any]]:
        """The top on the host and on the device."""
        return [(self._host, self._there)]

    def cut(self, tree) -> None:
        """Take a tree's paths."""
        upper, self._tail = trees.split(tree, self._top)
        self._tail_work = self._cpu.workspace(self._batch, self._nodes.shape[1], tree.depth, np.float32)
        self._place.do(self._make_room, upper)

    def _make_room(self, upper) -> None:
        self._plan = self._backend.tree_softmax.plan(upper)
        self._work = self._backend.split.workspace(self._batch, self._top, np.float32)

    def learn(self, grad, loss, hidden, target, rate, mode) -> None:
        """Learn from a batch of NumPy's arrays; write grad and loss."""
        self.learn_tail(grad, loss, hidden, target, rate, mode)
        top_loss = self._loss[: len(loss)]

        def top(_, out, grad, hidden, target):
            self.learn_top(grad, out, hidden, target, rate)

        written = {"grad": grad, "top loss": top_loss}
        self._place.call(top, written, {"grad": grad, "hidden": hidden, "target": target})
        loss += top_loss

    def learn_tail(self, grad, loss, hidden, target, rate, mode) -> None:
        """Write the tail's part of grad and loss, move its nodes: NumPy's arrays."""
        self._cpu.step(grad, loss, self._nodes, self._tail_work, self._tail, hidden, target, rate, mode)

    def learn_top(self, grad, loss, hidden, target, rate) -> None:
        """Add the top's part to grad, write that of loss, move its nodes: arrays of the device, in the work of a queue."""
        self._backend.split.step(grad, loss, self._there, self._work, self._plan, hidden, target, rate)

    def log_prob(self, out, hidden, target) -> None:
        """out[b] = log p(target[b] | hidden[b]); NumPy's arrays."""
        self._cpu.log_prob(out, self._nodes, self._tail, hidden, target)
        top = self._loss[: len(out)]
        self._place.call(self._top_log_prob, {"top loss": top}, {"hidden": hidden, "target": target})
        out += top

    def _top_log_prob(self, out, hidden, target) -> None:
        self._backend.tree_softmax.log_prob(out, self._there, self._plan, hidden, target)
