"""Memory that comes and goes in the order of the device's work, and copies of host memory that is not page-locked.

What is freed goes behind the work of all queues, on a stream that nothing waits for. The next array may lie there: so when one
is made the legacy default stream, and with it every queue and PyTorch's work, waits for that stream, on the device. Neither the
host nor another library's streams wait for anything.
"""

import collections
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu.runtime.queues import LEGACY, NON_BLOCKING, OUT_OF_MEMORY, check, libcuda, order

PART = 4 << 20  # bytes of page-locked memory that a copy goes through; two take turns

PINNED, ON_A_DEVICE = 1, 1  # CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
RELEASE_THRESHOLD, RESERVED, USED = 4, 5, 7  # CU_MEMPOOL_ATTR_..., all of them cuuint64_t
EVERYTHING = (1 << 64) - 1


class Behind:
    """A stream behind what queues do, on which things are freed. Made and used in the owner's thread.

    It has nothing to do with the legacy default stream: whatever is put on that one, such as a free, is a barrier between the
    queues. So it is told of the queues that it is not behind.
    """

    def __init__(self) -> None:
        import pycuda.driver as driver

        self.stream = driver.Stream(NON_BLOCKING)
        self._busy: dict[int, Any] = {}  # PyCUDA's streams by handle, which are kept: their queues may be gone

    def note(self, stream: Any) -> None:
        """A queue is about to put work on its stream."""
        self._busy[stream.handle] = stream

    def follow(self) -> None:
        """Let what is put on this stream later wait for what is on the queues now."""
        for handle in self._busy:
            order(handle, self.stream.handle)
        self._busy.clear()


class Properties(ctypes.Structure):
    """CUmemPoolProps of cuda.h."""

    _fields_ = (
        ("allocation", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", ctypes.c_int),
        ("number", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("most", ctypes.c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    )


class Pool:
    """Memory of a device from which blocks are taken, and which keeps what is free: to map memory anew takes 0.1 to 1 ms.

    It is not the device's default pool, because CuPy and PyTorch's cudaMallocAsync may have theirs there: how much is kept is
    for them to say, and what they keep is neither ours to count nor to give back. Used in the owner's thread; raises errors of
    PyCUDA.
    """

    def __init__(self, ordinal: int, behind: Behind):
        self._behind, self._pool = behind, ctypes.c_void_p()
        wanted = Properties(allocation=PINNED, location=ON_A_DEVICE, number=ordinal)
        check("cuMemPoolCreate", libcuda().cuMemPoolCreate(ctypes.byref(self._pool), ctypes.byref(wanted)))
        keep = ctypes.c_uint64(EVERYTHING)
        status = libcuda().cuMemPoolSetAttribute(self._pool, RELEASE_THRESHOLD, ctypes.byref(keep))
        check("cuMemPoolSetAttribute", status)

    def take(self, size: int) -> int:
        """The address of so many bytes, there for whatever is put on a queue later.

        Where there is no room, what is kept is given back first: free pieces, none of them large enough, may be in the way.
        """
        place = ctypes.c_uint64()
        status = self._ask(place, size)
        if status == OUT_OF_MEMORY:
            self.trim()
            status = self._ask(place, size)
        check("cuMemAllocFromPoolAsync", status)
        order(self._behind.stream.handle, LEGACY)
        return place.value

    def _ask(self, place: ctypes.c_uint64, size: int) -> int:
        stream = self._behind.stream.handle
        return int(libcuda().cuMemAllocFromPoolAsync(ctypes.byref(place), size, self._pool, stream))

    def give(self, pointer: int) -> None:
        """Free what was taken, behind what the stream is behind."""
        libcuda().cuMemFreeAsync(pointer, self._behind.stream.handle)  # fails where the device is lost

    def unused(self) -> int:
        """Bytes that are kept and not in use."""
        return self._told(RESERVED) - self._told(USED)

    def _told(self, attribute: int) -> int:
        value = ctypes.c_uint64()
        status = libcuda().cuMemPoolGetAttribute(self._pool, attribute, ctypes.byref(value))
        check("cuMemPoolGetAttribute", status)
        return value.value

    def trim(self) -> None:
        """Give back to the system what is not in use, once what is being freed is free."""
        self._behind.stream.synchronize()
        check("cuMemPoolTrimTo", libcuda().cuMemPoolTrimTo(self._pool, 0))

    def close(self) -> None:
        """Give everything back; nothing is in use."""
        self.trim()
        check("cuMemPoolDestroy", libcuda().cuMemPoolDestroy(self._pool))


class Block:
    """Bytes of a pool, taken now. Deleted in the owner's thread, it is freed behind what the pool's stream is behind."""

    def __init__(self, pool: Pool, size: int):
        self._pool, self._pointer = pool, pool.take(size)

    def __int__(self) -> int:
        return self._pointer

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._pool.give(self._pointer)


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
