"""Guards of training steps: deferred interrupts, exclusion of second threads, and a single active run."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
SPAWN = "start it by multiprocessing.get_context('spawn'), or have NUMBA_THREADING_LAYER=tbb"
_lost = False  # True if this process was forked after kernels had used OpenMP threads, which a fork does not copy


class Held:
    """A context that defers the first SIGINT to its end, where the previous handler receives it.

    Python's default handler then raises KeyboardInterrupt. A second SIGINT is not deferred: the handler receives both
    immediately, since the user saw no effect of the first. Python handles signals in the main thread only, so in another
    thread this does nothing. It also does nothing if SIGINT is ignored or ends the process.
    """

    def __init__(self) -> None:
        self._before: Callable[[int, Any], Any] | None = None
        self._waiting = 0  # signals not yet delivered to the handler
        self._first = True

    def __enter__(self) -> "Held":
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # not callable: handled by the system or by C code of an extension
                self._before, self._waiting, self._first = before, 0, True
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        before, self._before = self._before, None
        self._pass_on(before)

    def released(self) -> "Released":
        """Returns a context in which the caller's handler receives signals; a deferred one is delivered on entry."""
        return Released(self)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting += 1
        if self._first:
            self._first = False
        elif self._before and not _within(frame):
            self._pass_on(self._before)

    def _pass_on(self, handler: Callable[[int, Any], Any]) -> None:
        waiting, self._waiting = self._waiting, 0
        for _ in range(waiting):
            handler(signal.SIGINT, None)


def _within(frame: FrameType | None) -> bool:
    """True while a `Held` begins or ends: a handler that raises there would never be put back, so signals are only counted."""
    while frame and frame.f_code not in (Held.__enter__.__code__, Held.__exit__.__code__):
        frame = frame.f_back
    return frame is not None


class Released:
    """A context within a `Held`, around a `yield`, in which signals are not deferred."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held.__exit__()

    def __exit__(self, *exception: object) -> None:
        self._held.__enter__()


class Alone:
    """A reentrant context that excludes a second thread.

    name    of the object, for the message
    remedy  what to do instead, for the message

    Raises RuntimeError immediately for a second thread, and in a process that was forked after OpenMP threads had started,
    whose first kernel would crash. Nothing changes then.
    """

    def __init__(self, name: str, remedy: str):
        self._name, self._remedy = name, remedy
        self._lock = threading.RLock()  # an interrupt between lock and `with` only blocks other threads

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
    """The runs of a model, as generators of steps. Only the latest continues, and steps exclude other threads.

    A run abandoned between two steps, for example by an interrupt in a notebook, ends when the next run begins. A later
    request for a step raises RuntimeError.

    alone         admits one thread to the model
    name, remedy  those of `alone`
    """

    def __init__(self, name: str, remedy: str):
        self.alone = Alone(name, remedy)
        self._name = name
        self._latest: Generator[Any, None, None] | None = None

    def only(self, ticks: Generator[T, None, None]) -> Iterator[T]:
        """Yields the steps of a run; it begins, and the previous run ends, with the request for the first step."""
        with self.ended():
            self._latest = ticks
        try:
            while True:
                with self.alone:
                    if self._latest is not ticks:
                        raise RuntimeError(
                            f"{self._name}: found a run that ended when another run or a step began, expected one at a "
                            "time; finish or close the first, then start the second"
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
        """A context with exclusive access and the latest run ended, for changes to the model outside of runs."""
        with self.alone:
            latest, self._latest = self._latest, None
            if latest:
                latest.close()
            yield


def _forked() -> None:
    """Records in a forked child which threading layer its parent's kernels used."""
    global _lost
    numba = sys.modules.get("numba")
    with contextlib.suppress(ValueError):  # no kernel has run
        _lost = numba is not None and numba.threading_layer() == "omp"


os.register_at_fork(after_in_child=_forked)
