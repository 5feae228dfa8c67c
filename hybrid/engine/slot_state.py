"""The states of a slot: what may be done with its buffers, and when."""

import contextlib
from collections.abc import Iterator
from typing import Any

FREE, FILLING, READY, IN_USE = "free", "filling", "ready", "in use"
NEXT = {FREE: FILLING, FILLING: READY, READY: IN_USE, IN_USE: FREE}


class SlotState:
    """A slot is free, filling, ready, in use, and free again, always in this order.

    Raises RuntimeError, naming the slot and both states, for anything else, such as filling it while its work is under way.

    tick, micro  the batch and the micro-batch that it holds; count: how many examples are here
    final        whether the batch's last example is here
    examples     of the whole batch: how many, or the sum of their weights; by it sums over the batch become means
    loss         the mean in nats over the examples here of loss times weight, once a stage has written it
    events       of its stages, by name
    """

    def __init__(self) -> None:
        self.state = FREE
        self.micro = 0
        self.tick = -1
        self.count = 0  # examples here
        self.final = False
        self.examples: float = 0
        self.loss = 0.0
        self.events: dict[str, Any] = {}

    @contextlib.contextmanager
    def _filling(self) -> Iterator[None]:
        """A context in which a free slot is filled; where that fails it is free again."""
        self._become(FILLING)
        try:
            yield
        except BaseException:
            self.state = FREE
            raise
        self._become(READY)

    def take(self) -> None:
        """Begin to work on a slot that is ready."""
        self._become(IN_USE)

    def release(self) -> None:
        """The work on it is done: it may be filled again."""
        self._become(FREE)

    def _become(self, state: str) -> None:
        if NEXT[self.state] != state:
            raise RuntimeError(
                f"slot of tick {self.tick}, micro-batch {self.micro}: found {self.state}, cannot become {state}"
            )
        self.state = state
