"""What a command does while kernels are compiled: it says so, once, and lets the garbage collector wait.

Compiling makes objects by the million that live until its end; to look through them again and again takes a twentieth of it.
"""

import functools
import gc
import time
from typing import Any

from . import console

PATIENCE = 1.0  # seconds of compiling that nobody is told of


@functools.cache
def attend() -> None:
    """From now on do so, in this process."""
    from numba.core import event

    event.register("numba:compile", _listener(event.Listener))


def _listener(base: type) -> Any:
    class Attention(base):  # type: ignore[misc]
        """Told when the compilation of a function begins and ends, and of those that it calls within it."""

        def __init__(self) -> None:
            self.depth, self.spent, self.begun, self.told, self.collecting = 0, 0.0, 0.0, False, False

        def on_start(self, event: Any) -> None:
            if not self.depth:
                self.begun, self.collecting = time.perf_counter(), gc.isenabled()
                gc.disable()
            self.depth += 1
            self._tell()

        def on_end(self, event: Any) -> None:
            self._tell()
            self.depth -= 1
            if not self.depth:
                self.spent += time.perf_counter() - self.begun
                if self.collecting:
                    gc.enable()

        def _tell(self) -> None:
            if not self.told and self.spent + time.perf_counter() - self.begun > PATIENCE:
                self.told = True
                console.note("compiling kernels, once on this machine: up to a quarter of a minute")

    return Attention()
