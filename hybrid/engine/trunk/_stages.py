"""The stages of a trunk that goes forward, backward and moves."""

from ..part import Copies
from ..schedule import Stage
from ..slot import Slot


class Stages:
    """A trunk whose stages are forward, backward and update; a subclass has `forward`, `backward` and `move`."""

    ready: tuple[str, ...] = ("backward", "x_grad out")
    spares: tuple[str, ...] = ("x_grad",)  # a gradient that nobody reads is not computed

    def begin(self, copy: Copies) -> list[Stage]:
        """Forward."""
        return [Stage("forward", "dense", self.forward, ("gather", "x in")), *copy("hidden out", "forward")]

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """Backward; the gradient of the parameters is gathered."""
        return [Stage("backward", "dense", self.backward, ready), *copy("x_grad out", "backward")]

    def update(self) -> list[Stage]:
        """The parameters move, once a tick."""
        return [Stage("update", "dense", self.move, ("backward",))]

    def forward(self, slot: Slot) -> None:
        """Write slot.hidden_dev, and what backward needs, from slot.x_dev."""
        raise NotImplementedError

    def backward(self, slot: Slot) -> None:
        """Write slot.x_grad_dev, where there is one, from slot.grad_dev (overwritten); gather the parameters' gradient."""
        raise NotImplementedError

    def move(self, slot: Slot) -> None:
        """Move the parameters against the gradient that was gathered since the last call, and clear it."""
        raise NotImplementedError
