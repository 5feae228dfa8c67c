"""Ctrl-C between two ticks: SIGINT waits while parameters move."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Held:
    """While open, the first SIGINT waits; the handler that was there before gets it when this is closed.

    So Python's own handler raises KeyboardInterrupt there, and a handler of the caller's own is called there. A second
    SIGINT does not wait: the handler gets both at once, for who sees that the first does not come through. Signals reach
    the main thread alone, so in another one this does nothing; nor where SIGINT is ignored, or ends the process.
    """

    def __init__(self) -> None:
        self._before: Callable[[int, Any], Any] | None = None
        self._waiting = 0  # signals that the handler has not had yet
        self._first = True
        self._breaks = False  # whether a second signal is passed on now

    def __enter__(self) -> "Held":
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # otherwise the system's business, or of an extension's C code
                self._before, self._waiting, self._first, self._breaks = before, 0, True, True
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._before is None:
            return
        self._breaks = False  # from here on signals are counted only, so that the handler is sure to be put back
        signal.signal(signal.SIGINT, self._before)
        before, self._before = self._before, None
        self._pass_on(before)

    def released(self) -> "Released":
        """A context in which signals are the caller's; what has waited until then is his at its beginning."""
        return Released(self)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting += 1
        if self._first:
            self._first = False
        elif self._breaks and self._before:
            self._pass_on(self._before)

    def _pass_on(self, handler: Callable[[int, Any], Any]) -> None:
        waiting, self._waiting = self._waiting, 0
        for _ in range(waiting):
            handler(signal.SIGINT, None)


class Released:
    """The inside of a `Held` turned out, around a `yield`."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held.__exit__()

    def __exit__(self, *exception: object) -> None:
        self._held.__enter__()
