"""The queue of a feed beside a GPU: it works at once, in the caller's thread, and needs no Numba unless the feed does."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

Note = Callable[[float, float], object]


class Done:
    """Work that is over, with its result."""

    def __init__(self, result: Any):
        self._result = result

    def wait(self) -> Any:
        """The result."""
        return self._result


class Inline:
    """As `inline` of the CPU's device (cpu/device.py), whose package imports Numba.

    threads  with which a feed enters parallel kernels, where it has imported Numba
    """

    apart = False

    def __init__(self, name: str, threads: int):
        self.name, self._threads = name, threads

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Done:
        """Do `work(*arguments)` now."""
        for event in after:
            event.wait()
        if numba := sys.modules.get("numba"):
            numba.set_num_threads(self._threads)
        return Done(_timed(note, work, arguments))

    def close(self) -> None:
        """Nothing to end."""


def _timed(note: Note | None, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    start = time.perf_counter()
    result = work(*arguments)
    if note:
        note(start, time.perf_counter())
    return result
