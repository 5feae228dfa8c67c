"""The gradients of a module's parameters, as a flat array that is added up over micro-batches like that of other trunks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._stages import Gradient


class TorchGradient(Gradient):
    """The parameters' gradients lie one after another, in float32, or float64 where one of the parameters has it.

    place  where the module computes, see hybrid/engine/trunk/pytorch/place.py

    Its flags say which parameters have a gradient: an optimiser leaves others as they are. One that has none in a micro-batch
    has zeros there.
    """

    def __init__(self, device: Any, place: Any, parameters: Sequence[Any]):
        wide = any(str(own.dtype) == "torch.float64" for own in parameters)
        size = sum(own.numel() for own in parameters)
        super().__init__(device, size, self._merge, np.float64 if wide else np.float32)
        self._place, self._parameters = place, parameters
        self.flags = np.zeros(len(parameters), np.int8)

    def take(self) -> None:
        """Copy the parameters' gradients, which are those of the next micro-batch, and clear them."""
        for number, (own, room) in enumerate(self._rooms(self.next())):
            if own.grad is not None:
                room.copy_(own.grad.to_dense())
                self.flags[number], own.grad = 1, None

    def give(self) -> None:
        """Let the parameters have the sum as their gradients, until `clear`."""
        self.close()
        for reached, (own, room) in zip(self.flags, self._rooms(self.part()), strict=True):
            own.grad = room.to(own.dtype) if reached else None

    def clear(self) -> None:
        """Forget the sum."""
        for own in self._parameters:
            own.grad = None
        self._place.tensor(self.part()).zero_()
        self.flags[:] = 0

    def _rooms(self, array: Any) -> list[tuple[Any, Any]]:
        """Each parameter, and the place of its gradient in an array, of its shape."""
        flat = self._place.tensor(array).split([own.numel() for own in self._parameters])
        return [(own, room.view(own.shape)) for own, room in zip(self._parameters, flat, strict=True)]

    def _merge(self, total: Any, part: Any) -> None:
        there = self._place.tensor(part)
        self._place.tensor(total).add_(there)
        there.zero_()
