"""How a run ends before its end: by a signal, which it obeys between two ticks, or by an error."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from . import store

USER_ERRORS = (ValueError, IndexError, OSError, FloatingPointError)
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(Exception):
    """The run was stopped by a signal; what it had learned stands in its checkpoint."""

    def __init__(self, number: int, tick: int, folder: Path, unit: str = "tick"):
        super().__init__(f"stopped at {unit} {tick}; go on with: hybrid train --resume {folder}")
        self.signal = number


class Stop:
    """While open, SIGINT, SIGTERM and SIGHUP ask for a stop at the next tick instead of ending the process; twice ends it.

    A signal that is ignored stays so (SIGHUP under nohup). Python hands signals to the main thread alone, so in another
    one this does nothing.

    signal  the one that is obeyed; 0: none
    """

    signal = 0
    _coming = 0  # one that another rank has had, and this one may have yet

    def __enter__(self) -> "Stop":
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: a handler of C code's own
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def obey(self, number: int) -> None:
        """Stop by a signal that another rank has had, 0 for none: when it comes to this one, it is not the second."""
        if number and not self.signal:
            self.signal = self._coming = number

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal and number != self._coming:
            raise KeyboardInterrupt
        self.signal, self._coming = self.signal or number, 0

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if number == self._coming else handler)


@contextlib.contextmanager
def leaving(folder: Path) -> Iterator[None]:
    """While a run learns: an error that ends it says what is left of it, and how to begin again where it diverged."""
    try:
        yield
    except USER_ERRORS as failure:
        if isinstance(failure, FloatingPointError):
            failure.add_note("begin again with lower rates and --overwrite")
        failure.add_note(store.standing(folder))
        raise
