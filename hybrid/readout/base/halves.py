"""A readout of two halves: a top, which learns by the batch as dense products on a device, and a tail on the CPU."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import check
from ...engine.part import Buffers, Copies
from ...engine.schedule import Stage
from ...engine.slot import Slot
from ...interrupt import Held
from . import Base
from .stages import stepped


class Halves(Base):
    """Each half of a step adds its part to loss and gradient; in a tick they are the stages "readout" and then "top".

    A subclass has these methods, which trust their arguments, beside those of Base:

        _learn_tail    write the tail's part of grad and loss; NumPy's arrays
        learn_top      add the top's part to grad, write that of loss; arrays of the device, in the work of a queue
        _tail_log_prob, _top_log_prob  write the log-probability of either half
    """

    ready = ("readout", "grad in", "top")
    on_host = True  # with all its arguments, whatever else is on a device

    def buffers(self) -> Buffers:
        """Beside the trunk everything crosses: the tail reads hidden vectors on the host, the top learns on the device."""
        return Buffers({}, ("hidden", "grad", "target", "weight", "losses")) if self.beside else super().buffers()

    def finish(self, copy: Copies) -> list[Stage]:
        """The tail on the CPU, then the top beside the trunk."""
        if not self.beside:
            return super().finish(copy)
        return [
            *copy("target in"),
            Stage("readout", "sparse", self._step_tail, ("forward", "hidden out")),
            *copy("grad in", "readout"),
            Stage("top", "dense", self._step_top, ("forward", "target in", "grad in")),
            *copy("losses out", "top"),
        ]

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learn from a batch and return its mean loss in nats; see Readout."""
        return self._learned(self.learn, grad, hidden, target, weight)

    def learn(
        self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None
    ) -> None:
        """As in Readout, but with NumPy's arrays, and it waits: the tail is on the CPU wherever the top is.

        In a tick `step_tail` and `learn_top` are stages of their own instead.
        """
        self._learn_tail(grad, loss, hidden, target, weight)
        top = self._top_loss[: len(loss)]
        written, read = {"grad": grad, "top loss": top}, {"grad": grad, "hidden": hidden, "target": target}
        read |= {} if weight is None else {"weight": weight}
        self._place.call(lambda _, loss, *arrays: self.learn_top(arrays[0], loss, *arrays[1:]), written, read)
        loss += top

    def step_tail(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """The first half of `step`: write the tail's part of grad, return that of the loss; raises what `step` raises."""
        return self._learned(self._learn_tail, grad, hidden, target, weight)

    def learn_top(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """The second half: add the top's part to grad and write that of loss; arrays of the device, in the work of a queue."""
        raise NotImplementedError

    def _learned(
        self,
        learn: Callable[..., None],
        grad: np.ndarray,
        hidden: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None,
    ) -> float:
        """The mean loss of learn(grad, loss, hidden, target, weight), which waits, behind the checks of a step."""
        rows = self._check_step(grad, hidden, target, weight)
        if not rows:
            return 0.0
        with Held(), self.alone:
            loss = self._loss[:rows]
            learn(grad, loss, hidden, target, weight)
            return check.loss(loss)

    def _step_tail(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        slot.loss = stepped(self.step_tail, slot, self.batch)

    def _step_top(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        self.learn_top(slot.grad_dev, slot.losses_dev, slot.hidden_dev, slot.target_dev, slot.weight_dev)

    def _judge(self, slot: Slot) -> None:
        slot.loss = check.loss(slot.losses) + slot.loss

    def _score(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        self._tail_log_prob(out, hidden, target)
        top = self._top_loss[: len(out)]
        self._place.call(self._top_log_prob, {"top loss": top}, {"hidden": hidden, "target": target})
        out += top

    @functools.cached_property
    def _top_loss(self) -> np.ndarray:
        """Room for the top's part of the losses."""
        return np.empty(self.batch, np.float32)

    def _learn_tail(
        self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None
    ) -> None:
        raise NotImplementedError

    def _tail_log_prob(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        raise NotImplementedError

    def _top_log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        raise NotImplementedError
