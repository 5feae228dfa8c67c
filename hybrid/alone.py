"""One thread at a time: an object whose calls share buffers refuses a second thread, by an error that names it."""

import contextlib
import os
import sys
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


SPAWN = "begin it by multiprocessing.get_context('spawn'), or have NUMBA_THREADING_LAYER=tbb"
_lost = False  # whether this process was forked after kernels had run on OpenMP's threads, which a fork leaves behind


class Alone:
    """`with alone:` stands around what two threads must not do at once. A thread that is inside may enter again.

    name    of the object, for the message
    remedy  what to do instead, for the message

    Raises RuntimeError at once for a second thread, and in a process whose first kernel would end it: one that was forked
    after OpenMP's threads had begun. Nothing has moved then.
    """

    def __init__(self, name: str, remedy: str):
        self._name, self._remedy = name, remedy
        self._lock = threading.RLock()  # an interrupt between lock and `with` shuts out other threads only

    def __enter__(self) -> None:
        if _lost:
            raise RuntimeError(
                f"{self._name}: found a process that was forked after kernels had run on OpenMP's threads, expected one with "
                f"threads of its own; {SPAWN}"
            )
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"{self._name}: found a call while another thread's is under way, expected one thread at a time; "
                f"{self._remedy}"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


class Runs:
    """The runs of a model: generators of ticks. Only the latest goes on, and each of its ticks is computed alone.

    A run that the caller has left between two ticks, as an interrupt in a notebook does, ends when the next run begins. If
    it is asked for a tick after that, it raises RuntimeError.

    alone         lets one thread into the model
    name, remedy  those of `alone`
    """

    def __init__(self, name: str, remedy: str):
        self.alone = Alone(name, remedy)
        self._name = name
        self._latest: Generator[Any, None, None] | None = None

    def only(self, ticks: Generator[T, None, None]) -> Iterator[T]:
        """The ticks of a run. It begins, and the run before it ends, when the first tick is asked for."""
        with self.ended():
            self._latest = ticks
        try:
            while True:
                with self.alone:
                    if self._latest is not ticks:
                        raise RuntimeError(
                            f"{self._name}: found a run that ended when another run or a step began, expected one at a "
                            "time; use up or close the first, then begin the second"
                        )
                    try:
                        tick = next(ticks)
                    except StopIteration:
                        return
                yield tick
        finally:
            ticks.close()

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """A context with the model alone and the latest run ended, for what moves the model outside of runs."""
        with self.alone:
            latest, self._latest = self._latest, None
            if latest:
                latest.close()
            yield


def _forked() -> None:
    """In a child: what its parent's kernels have run on."""
    global _lost
    numba = sys.modules.get("numba")
    with contextlib.suppress(ValueError):  # no kernel has run
        _lost = numba is not None and numba.threading_layer() == "omp"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
