"""The CPU as a device: queues are worker threads, arrays are NumPy's, nothing is copied to the device."""

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu.runtime import threads as waiting
from cpu.runtime.compiled import Array

Note = Callable[[float, float], object]  # receives the start and end time of the work, in seconds of time.perf_counter


class Event:
    """A point on a queue; `wait` blocks until it is past and raises what the work raised."""

    def __init__(self, future: Future[Any]):
        self._future = future

    def wait(self) -> Any:
        """Blocks until the work is done; returns its result."""
        return self._future.result()


class Queue:
    """A worker thread that does its work in order, entering parallel kernels with `threads` threads.

    After a failure every later item fails with the same exception, as in a CUDA stream. So no stage runs on the output of a
    failed one.
    """

    apart = True

    def __init__(self, name: str, threads: int):
        self.name = name
        self._failure: BaseException | None = None
        self._worker = ThreadPoolExecutor(
            1, thread_name_prefix=name, initializer=numba.set_num_threads, initargs=(threads,)
        )

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Event:
        """See the contract."""
        return Event(self._worker.submit(self._do, work, arguments, after, note))

    def _do(self, work: Callable[..., Any], arguments: tuple[Any, ...], after: Sequence[Any], note: Note | None) -> Any:
        if self._failure:
            raise self._failure
        try:
            for event in after:
                event.wait()
            return _timed(note, work, arguments)
        except BaseException as failure:
            self._failure = failure
            raise

    def close(self) -> None:
        """Finishes all queued work and ends the thread."""
        self._worker.shutdown(wait=True)


class Inline:
    """A queue that does its work synchronously in the caller's thread."""

    apart = False

    def __init__(self, name: str, threads: int):
        self.name = name
        self._threads = threads

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Event:
        """Does `work(*arguments)` now."""
        future: Future[Any] = Future()
        for event in after:
            event.wait()
        numba.set_num_threads(self._threads)
        future.set_result(_timed(note, work, arguments))
        return Event(future)

    def close(self) -> None:
        """Does nothing."""


class Recorder:
    """Repeats recorded work by calling it again: a CPU has no launch overhead to save."""

    def run(self, key: Hashable, work: Callable[..., Any], *arguments: Any) -> None:
        """Does `work(*arguments)`."""
        work(*arguments)


def _timed(note: Note | None, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    start = time.perf_counter()
    result = work(*arguments)
    if note:
        note(start, time.perf_counter())
    return result


def _copy(target: Array, source: Array) -> None:
    if target is not source:
        np.copyto(target, source)


class Device:
    """This machine's memory and cores as a device."""

    name = "cpu"
    host_memory = float64 = threads = True
    closed = False  # stays False: the device holds nothing to release

    def queue(self, name: str, threads: int) -> Queue:
        """Returns a new worker thread; ValueError for more threads than Numba started with."""
        return Queue(name, check_threads(threads))

    def inline(self, name: str, threads: int) -> Inline:
        """Returns a queue in the caller's own thread."""
        return Inline(name, check_threads(threads))

    def enters_together(self) -> bool:
        """True if several threads may run kernels at once."""
        return waiting.enters_together()

    def recorder(self) -> Recorder:
        """Returns a recorder."""
        return Recorder()

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Returns an uninitialised array."""
        return np.empty(shape, dtype)

    host_empty = empty

    def mirror(self, array: Array) -> Array:
        """Returns the same array."""
        return array

    def from_host(self, array: Array) -> Array:
        """Returns the same array."""
        return array

    def to_host(self, array: Array) -> Array:
        """Returns the same array."""
        return array

    def copy(self, target: Array, source: Array) -> None:
        """Copies an array into another one, within the work of a queue; usually both are the same."""
        _copy(target, source)

    def write(self, array: Array, source: Array) -> None:
        """Copies `source` into the array, unless both are the same."""
        _copy(array, source)

    def close(self) -> None:
        """Does nothing."""


def check_threads(threads: int) -> int:
    """Returns `threads`; ValueError, with the remedy, if Numba cannot use so many."""
    most = numba.config.NUMBA_NUM_THREADS
    if not 1 <= threads <= most:
        raise ValueError(
            f"threads: found {threads}, expected 1 to {most}; for more set NUMBA_NUM_THREADS before the start"
        )
    return threads
