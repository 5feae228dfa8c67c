"""Where a readout computes: in the host's memory, or on a device with memory of its own, to which arrays are copied."""

from collections.abc import Callable
from typing import Any

import numpy as np

Work = Callable[..., None]


def place(device: Any) -> "Here | There":
    """The place for a device of hybrid/contract.py."""
    return Here() if device.host_memory else There(device)


class Here:
    """The host's memory: work is done in the caller's thread, on the caller's arrays."""

    def do(self, work: Work, *arguments: Any) -> None:
        """Do `work(*arguments)`."""
        work(*arguments)

    def call(self, work: Work, written: dict[str, np.ndarray], read: dict[str, np.ndarray]) -> None:
        """Do work(*written, *read)."""
        work(*written.values(), *read.values())


class There:
    """A device with memory of its own: work is done on a queue of the readout, and waited for.

    NumPy's arrays are copied through page-locked buffers. A buffer is made when its name is first used, and made anew only
    for more rows or for rows of another shape.
    """

    def __init__(self, device: Any):
        self._device, self._queue = device, device.inline("readout", 0)
        self._buffers: dict[str, tuple[np.ndarray, Any]] = {}

    def do(self, work: Work, *arguments: Any) -> None:
        """Do `work(*arguments)` within the work of the queue; it takes arrays of the device."""
        try:
            self._queue.run(work, *arguments).wait()
        except ValueError:  # bad input of the user's, no failure of the device: but this queue takes no more work
            self._queue.close()
            self._queue = self._device.inline("readout", 0)
            raise

    def follow(self, stream: int) -> None:
        """Let later work wait for what another library has put on its CUDA stream so far."""
        self._queue.wait_for(stream)

    def call(self, work: Work, written: dict[str, np.ndarray], read: dict[str, np.ndarray]) -> None:
        """Do work(*written, *read) with arrays of the device in place of these, and fill those in `written` from it."""
        buffers = {name: self._buffer(name, array) for name, array in (written | read).items()}
        for name, array in read.items():
            np.copyto(buffers[name][0], array)
        self.do(self._launch, work, [buffers[name] for name in written], [buffers[name] for name in read])
        for name, array in written.items():
            np.copyto(array, buffers[name][0])

    def _launch(self, work: Work, written: list[tuple[np.ndarray, Any]], read: list[tuple[np.ndarray, Any]]) -> None:
        for host, there in read:
            self._device.copy(there, host)
        work(*(there for _, there in written), *(there for _, there in read))
        for host, there in written:
            self._device.copy(host, there)

    def _buffer(self, name: str, array: np.ndarray) -> tuple[np.ndarray, Any]:
        """Room for an array, page-locked and on the device."""
        host = self._buffers[name][0] if name in self._buffers else None
        if host is None or len(host) < len(array) or (host.shape[1:], host.dtype) != (array.shape[1:], array.dtype):
            host = self._device.host_empty(array.shape, array.dtype)
            self._buffers[name] = host, self._device.mirror(host)
        return tuple(buffer[: len(array)] for buffer in self._buffers[name])  # type: ignore[return-value]
