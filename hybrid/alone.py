"""One thread at a time: objects whose calls share buffers refuse a second one by name."""

import contextlib
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Alone:
    """`with alone:` around what two threads must not do at once; a thread that is inside may come in again.

    name    of the object, and `remedy`: what to do instead, for the message

    Raises RuntimeError, at once, for a second thread; then nothing has moved.
    """

    def __init__(self, name: str, remedy: str):
        self._name, self._remedy = name, remedy
        self._lock = threading.RLock()  # an interrupt between lock and `with` shuts out other threads only

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"{self._name}: found a call while another thread's is under way, expected one thread at a time; "
                f"{self._remedy}"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


class Runs:
    """The runs of a model, generators of ticks of which only the latest goes on: each of its ticks is computed alone.

    One that the caller has left between two ticks, as an interrupt in a notebook leaves it, ends where the next begins; if
    it is asked for a tick after all, it raises RuntimeError.

    alone  lets one thread into the model; name and remedy are its
    """

    def __init__(self, name: str, remedy: str):
        self.alone = Alone(name, remedy)
        self._name = name
        self._latest: Generator[Any, None, None] | None = None

    def only(self, ticks: Generator[T, None, None]) -> Iterator[T]:
        """The ticks of a run that begins with the first of them."""
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
        """Alone, and the latest run ended: for what moves the model outside of runs."""
        with self.alone:
            latest, self._latest = self._latest, None
            if latest:
                latest.close()
            yield
