"""The stages of a trunk that goes forward, backward and moves."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..part import Copies
from ..schedule import Stage
from ..slot import Slot


class Stages:
    """A trunk whose stages are forward, backward and update; a subclass has `forward`, `falling` and `move`.

    gradient  that of its parameters, once it is placed
    """

    gradient: Any = None
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
        for _ in self.falling(slot):
            pass
        self.gradient.add(slot.micro)

    def falling(self, slot: Slot) -> Iterator[int]:
        """Do the same step by step, last layers first, but write the gradient to what `gradient.next()` gives, and add nothing.

        After each step comes the place from which on the gradient of the parameters is whole; 0 when all is done.
        """
        raise NotImplementedError

    @property
    def spans(self) -> Sequence[slice]:
        """The parts of the gradient that ranks add up as soon as they are whole, in the order of `falling`: here one."""
        return [slice(0, self.gradient.size)]

    def move(self, slot: Slot) -> None:
        """Move the parameters against the gradient that was gathered since the last call, and clear it."""
        raise NotImplementedError
