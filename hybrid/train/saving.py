"""When a run under way is saved: by the clock, so that whatever ends it costs no more than a known time of work."""

import time

EVERY = 60  # seconds, where the user does not say


class Saves:
    """The clock of a run's saves, wound from the end of one to the beginning of the next.

    every  seconds between two; 0: the clock asks for none; None: EVERY
    """

    def __init__(self, every: float | None):
        self.every = EVERY if every is None else every
        self.done()

    def due(self) -> bool:
        """Whether it is time for a save."""
        return self.every > 0 and time.monotonic() - self._last >= self.every

    def done(self) -> None:
        """There was a save just now."""
        self._last = time.monotonic()
