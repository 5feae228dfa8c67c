"""Ctrl-C between two ticks: SIGINT waits while parameters move."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Held:
    """While this context is open, the first SIGINT waits. When it closes, the handler that was there before gets the signal.

    There Python's own handler raises KeyboardInterrupt, or a handler of the caller's own is called. A second SIGINT does not
    wait: the handler gets both at once, since the user saw that the first had no effect yet. Python handles signals in the
    main thread only, so in another thread this does nothing; nor does it where SIGINT is ignored or ends the process.
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
        """A context in which signals go to the caller's handler; one that has waited until then goes there at once."""
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
    """A context within a `Held` in which signals do not wait; it stands around a `yield`."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held.__exit__()

    def __exit__(self, *exception: object) -> None:
        self._held.__enter__()
