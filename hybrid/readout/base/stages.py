"""How a readout takes part in a tick: by `step` where its parameters are on the host, by `learn` where a GPU has them."""

from collections.abc import Callable
from typing import Any

from ... import check
from ...engine.part import Buffers, Copies
from ...engine.schedule import Stage
from ...engine.slot import Slot
from . import several


class Staged:
    """The stages of a readout that has `backend`, `rate_scale`, `step` and `learn`.

    ready  names of the stages after which the gradient of the hidden vectors is whole
    counts_unlabelled  whether examples without a target count in the mean over a batch, see Readout
    """

    backend: Any
    batch: int
    rate_scale: float
    step: Callable[..., float]
    learn: Callable[..., None]
    ready: tuple[str, ...] = ("readout", "grad in")
    counts_unlabelled: bool = False

    @property
    def beside(self) -> bool:
        """Whether it is on the trunk's GPU, beside the trunk."""
        return not self.backend.device.host_memory

    def buffers(self) -> Buffers:
        """Hidden vectors and gradients cross to a readout on the host; targets, weights and losses to one beside the trunk."""
        return Buffers({}, ("target", "weight", "losses") if self.beside else ("hidden", "grad"))

    @property
    def several(self) -> bool:
        """Whether examples may have several targets: on the host, where they become examples of one target each."""
        return not self.beside

    def finish(self, copy: Copies) -> list[Stage]:
        """From the hidden vectors to their gradient; the parameters move."""
        if self.beside:
            learn = Stage("readout", "dense", self._learn, ("forward", "target in"))
            return [*copy("target in"), learn, *copy("losses out", "readout")]
        return [Stage("readout", "sparse", self._step, ("forward", "hidden out")), *copy("grad in", "readout")]

    def last(self, copy: Copies) -> list[Stage]:
        """The mean of losses that came from the device."""
        return [Stage("loss", "sparse", self._judge, ("losses out",))] if self.beside else []

    def _step(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        slot.loss = stepped(self.step, slot, self.batch)

    def _learn(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        weight = () if slot.weight_dev is None else (slot.weight_dev,)
        self.learn(slot.grad_dev, slot.losses_dev, slot.hidden_dev, slot.target_dev, *weight)

    def _judge(self, slot: Slot) -> None:
        slot.loss = check.loss(slot.losses)


def stepped(step: Callable[..., float], slot: Slot, batch: int) -> float:
    """The loss of a step on a slot. Hidden vectors that are not finite are no bad input here: the model has diverged.

    batch  most rows of a step
    """
    try:
        if slot.target_at is not None:
            return several.stepped(step, slot, batch)
        weight = () if slot.weight is None else (slot.weight,)
        return step(slot.grad, slot.hidden, slot.target, *weight)
    except ValueError as failure:
        raise FloatingPointError(str(failure)) from None
