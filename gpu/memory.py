"""Memory that comes and goes in the order of the device's work, and copies of host memory that is not page-locked.

The order is that of the legacy default stream: it waits for what is on all queues, and they for it, on the device. So neither
the host nor another library's streams wait for anything.
"""

import collections
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu.queues import check, libcuda

PART = 4 << 20  # bytes of page-locked memory that a copy goes through; two take turns


class Block:
    """Bytes of the device's pool, there for whatever is put on a queue later. Deleted in the owner's thread, it is freed
    behind what is on the queues then. Raises errors of PyCUDA."""

    def __init__(self, size: int):
        place = ctypes.c_uint64()
        check("cuMemAllocAsync", libcuda().cuMemAllocAsync(ctypes.byref(place), ctypes.c_size_t(size), None))
        self._pointer = place.value

    def __int__(self) -> int:
        return self._pointer

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            libcuda().cuMemFreeAsync(ctypes.c_uint64(self._pointer), None)  # fails where the device is lost


class Staging:
    """Copies between a device and memory that is not page-locked, through two page-locked buffers in turn.

    A copy begins once all that is on the queues is done, and is complete when a method returns.
    """

    def __init__(self, buffers: tuple[NDArray[np.uint8], NDArray[np.uint8]]):
        import pycuda.driver as driver

        self._parts = [(buffer, driver.Event(driver.event_flags.DISABLE_TIMING)) for buffer in buffers]

    def write(self, pointer: int, source: NDArray[np.uint8]) -> None:
        """To the device; source is contiguous."""
        import pycuda.driver as driver

        for (buffer, free), at in self._turns(source.nbytes):
            part = source[at : at + PART]
            free.synchronize()  # the copy before the last has read the buffer
            buffer[: part.nbytes] = part
            driver.memcpy_htod_async(pointer + at, buffer[: part.nbytes], None)
            free.record()
        for _, free in self._parts:
            free.synchronize()

    def read(self, target: NDArray[np.uint8], pointer: int) -> None:
        """From the device; target is contiguous."""
        import pycuda.driver as driver

        under_way: collections.deque[Any] = collections.deque()
        for (buffer, there), at in self._turns(target.nbytes):
            if len(under_way) == len(self._parts):
                _take(*under_way.popleft())
            part = target[at : at + PART]
            driver.memcpy_dtoh_async(buffer[: part.nbytes], pointer + at, None)
            there.record()
            under_way.append((part, buffer, there))
        while under_way:
            _take(*under_way.popleft())

    def _turns(self, size: int) -> Any:
        """A buffer with its event, and where its part of so many bytes begins."""
        return ((self._parts[number % 2], at) for number, at in enumerate(range(0, size, PART)))


def _take(part: NDArray[np.uint8], buffer: NDArray[np.uint8], there: Any) -> None:
    there.synchronize()
    part[:] = buffer[: part.nbytes]
