"""What may be done with the buffers of a batch under way, and when."""

import contextlib
from collections.abc import Iterator
from typing import Any

FREE, FILLING, READY, IN_USE = "free", "filling", "ready", "in use"
NEXT = {FREE: FILLING, FILLING: READY, READY: IN_USE, IN_USE: FREE}


class SlotState:
    """A slot goes round: free, filling, ready, in use, free.

    A step out of turn, as filling it while its work is under way, is a RuntimeError that names the slot and both states.
    """

    def __init__(self):
        self.state = FREE
        self.micro = 0
        self.tick = -1
        self.count = 0  # examples here
        self.loss = 0.0
        self.events: dict[str, Any] = {}

    @contextlib.contextmanager
    def _filling(self) -> Iterator[None]:
        """Around what fills a free slot; one that could not be filled is free again."""
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
        """The work on it is past: it may be filled again."""
        self._become(FREE)

    def _become(self, state: str) -> None:
        if NEXT[self.state] != state:
            raise RuntimeError(
                f"slot of tick {self.tick}, micro-batch {self.micro}: found {self.state}, cannot become {state}"
            )
        self.state = state
