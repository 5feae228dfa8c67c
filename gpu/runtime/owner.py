"""The one thread that owns a CUDA context: it creates, uses and frees PyCUDA's objects.

PyCUDA ties a stream, an event or a piece of memory to the thread that created it. Freed in another one, as the garbage
collector may do, it leaks with a warning.
"""

import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

# Driver errors as exceptions of this package, which name the device, the request and the remedy.


class DeviceError(OSError):
    """A device or driver failure: data on the device is lost, data on the host is not."""


def failed(name: str, error: object) -> DeviceError:
    """Returns the exception for an error that the driver, or a library on the device `name`, reports."""
    return DeviceError(
        f"{name}: {error}; what was on the device is lost, the last checkpoint is intact; `hybrid doctor` may say more"
    )


class Translated:
    """A context that converts driver errors to MemoryError or DeviceError.

    name    of the device
    wanted  the requested memory, for the message
    """

    def __init__(self, name: str, wanted: str = ""):
        self._name, self._wanted = name, wanted

    def __enter__(self) -> "Translated":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        driver = sys.modules.get("pycuda.driver")  # unless it is loaded, no driver call can have failed
        if driver is None or not isinstance(error, driver.Error):
            return
        if isinstance(error, driver.MemoryError):
            raise MemoryError(f"{self._name}: no room for {self._wanted or 'what a kernel needs'}{_room()}") from error
        raise failed(self._name, error) from error


def _room() -> str:
    """Returns the free memory of the current device, for a message."""
    import pycuda.driver as driver

    try:
        free, total = driver.mem_get_info()
    except driver.Error:
        return ""
    return f"; {free / 1e6:,.1f} of {total / 1e6:,.1f} MB are free"


class Owner:
    """A thread that does submitted work in order.

    It is a daemon: a thread that ends while a CUDA context is current makes PyCUDA abort the process. So without `close` the
    thread must outlive the process.
    """

    def __init__(self, name: str):
        self.closed = False
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Does the work after all earlier work; the future has its result or exception, DeviceError for one of the driver.

        Raises RuntimeError once closed.
        """
        if self.closed:
            raise RuntimeError(f"{self._thread.name} is closed")
        future: Future[Any] = Future()
        self._work.put((future, work, arguments))
        return future

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Does the work and returns its result; runs it directly in the owner's own thread."""
        if threading.current_thread() is self._thread:
            return work(*arguments)
        return self.submit(work, *arguments).result()

    def post(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Does `submit` without a result, and nothing once closed; for finalizers, which may run in any thread, at any time.

        An abandoned thread must not wake at process exit: it would end, and PyCUDA abort.
        """
        if not self.closed:
            self._work.put((None, work, arguments))

    def close(self, end: bool = True) -> None:
        """Rejects further work, and ends the thread once all work is done.

        end  False: leave the thread blocked, because its context could not be released
        """
        self.closed = True
        if end and self._thread.is_alive():
            self._work.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, work, arguments = item
            try:
                with Translated(self._thread.name):
                    result = work(*arguments)
            except BaseException as failure:  # raised by the future's result, KeyboardInterrupt too
                if future:
                    future.set_exception(failure)
            else:
                if future:
                    future.set_result(result)
                del result
            del item, future, work, arguments  # keeps nothing alive while waiting
