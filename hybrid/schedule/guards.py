"""What stands around a step: an interrupt waits for its end, a second thread is refused, and one run goes on at a time."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
SPAWN = "begin it by multiprocessing.get_context('spawn'), or have NUMBA_THREADING_LAYER=tbb"
_lost = False  # whether this process was forked after kernels had run on OpenMP's threads, which a fork leaves behind


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
