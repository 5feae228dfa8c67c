"""Early ends of a run: signals, handled between two steps, and errors."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from . import store

USER_ERRORS = (ValueError, IndexError, OSError, FloatingPointError)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """The run was stopped by a signal; its progress is in the checkpoint."""

    def __init__(self, number: int, tick: int, folder: Path, unit: str = "tick"):
        super().__init__(f"stopped at {unit} {tick}; continue with: hybrid train --resume {folder}")
        self.signal = number


class Stop:
    """A context in which SIGINT, SIGTERM and SIGHUP request a stop at the next step; a second signal ends the process.

    Ignored signals stay ignored (SIGHUP under nohup). Python delivers signals to the main thread only, so in another thread
    this does nothing.

    signal  the one that requested the stop; 0: none
    """

    signal = 0
    _coming = 0  # a signal to another rank, which may still reach this one

    def __enter__(self) -> "Stop":
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: handled by C code
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def obey(self, number: int) -> None:
        """Requests a stop for a signal to another rank, 0 for none; its later arrival here does not count as a second."""
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
    """A context that adds to errors what remains of the run, and a remedy if it diverged."""
    try:
        yield
    except USER_ERRORS as failure:
        if isinstance(failure, FloatingPointError):
            failure.add_note("begin again with lower rates and --overwrite")
        failure.add_note(store.standing(folder))
        raise
