"""What trunks of our own kernels share: parameters that are mirrored on a device."""

from typing import Any

import numpy as np

from ... import mirror
from ._stages import Stages


class Dense(Stages):
    """A trunk with weights of our own.

    A subclass has `forward`, `falling`, `move`, `parameters` and `describe`, sets `_device` when it is placed, and pairs
    every array of the host with that of the device in `_pairs`.

    pickle and copy make a trunk with parameters of its own, which is not yet placed.
    """

    kind = "mlp"
    places: tuple[str, ...] = ("cpu", "cuda")
    _device: Any = None  # until it is placed

    def parameters(self) -> dict[str, np.ndarray]:
        """Weights and state of the optimiser, by name: arrays of the host."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again, and its kind."""
        raise NotImplementedError

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""
        mirror.fetch(self._device, self._pairs())

    def send(self) -> None:
        """Bring the parameters from the host to the device; nothing to do where the device shares its memory."""
        mirror.send(self._device, self._pairs())

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        if self._device:
            self.fetch()
        return restored, (type(self), self.describe(), self.parameters())


def restored(kind: type[Dense], facts: dict[str, Any], parameters: dict[str, np.ndarray]) -> Dense:
    """A trunk as it was pickled or copied, not yet placed."""
    made = kind(**{name: value for name, value in facts.items() if name != "kind"})
    for name, array in made.parameters().items():
        array[:] = parameters[name]
    return made
