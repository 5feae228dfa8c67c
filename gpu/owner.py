"""The one thread that owns a CUDA context: PyCUDA's objects are made, used and freed there, whoever asks for it.

PyCUDA ties a stream, an event or a piece of memory to the thread in which it was made: freed in another one, as the garbage
collector may do, it leaks with a warning.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Owner:
    """Does what it is given, in order, in a thread of its own.

    A daemon: a thread that ends with a CUDA context still current makes PyCUDA abort the process, so at an exit in haste
    it must not end at all. `close` ends it in good order.
    """

    def __init__(self, name: str):
        self.closed = False
        self._work: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable, *arguments) -> Future:
        """Do the work after all that was given before; the future has its result or what it raised.

        Raises RuntimeError once closed.
        """
        if self.closed:
            raise RuntimeError(f"{self._thread.name} is closed")
        future: Future = Future()
        self._work.put((future, work, arguments))
        return future

    def call(self, work: Callable, *arguments) -> Any:
        """Do the work and return its result; at once where the caller is the owner itself."""
        if threading.current_thread() is self._thread:
            return work(*arguments)
        return self.submit(work, *arguments).result()

    def post(self, work: Callable, *arguments) -> None:
        """As submit, but nobody hears of it: for finalizers, which may run in any thread, at any time."""
        self._work.put((None, work, arguments))

    def close(self, end: bool = True) -> None:
        """Take no more work; end the thread once all that was given is done, unless its context cannot be given back."""
        self.closed = True
        if end and self._thread.is_alive():
            self._work.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, work, arguments = item
            try:
                result = work(*arguments)
            except BaseException as failure:  # the asker's to deal with, KeyboardInterrupt too
                if future:
                    future.set_exception(failure)
            else:
                if future:
                    future.set_result(result)
            del item, future, work, arguments  # nothing is kept alive while waiting
