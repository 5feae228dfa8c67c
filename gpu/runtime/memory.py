"""Stream-ordered allocation of device memory, and copies of host memory that is not page-locked.

Memory is freed behind the work of all queues, on a stream that nothing waits for. The next array may reuse it. So at an
allocation the legacy default stream, and with it every queue and PyTorch's work, waits for that stream on the device. Neither
the host nor other libraries' streams wait.
"""

import collections
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu.runtime.queues import LEGACY, NON_BLOCKING, OUT_OF_MEMORY, check, libcuda, order

PART = 4 << 20  # bytes of each of the two page-locked buffers of a copy

PINNED, ON_A_DEVICE = 1, 1  # CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
RELEASE_THRESHOLD, RESERVED, USED = 4, 5, 7  # CU_MEMPOOL_ATTR_..., all of type cuuint64_t
EVERYTHING = (1 << 64) - 1


class Behind:
    """A stream behind the work of all queues, on which memory is freed. Created and used in the owner's thread.

    It is independent of the legacy default stream, where any operation, such as a free, is a barrier between the queues. So it
    tracks the queues with new work.
    """

    def __init__(self) -> None:
        import pycuda.driver as driver

        self.stream = driver.Stream(NON_BLOCKING)
        self._busy: dict[int, Any] = {}  # PyCUDA's streams by handle, kept alive: their queues may be gone

    def note(self, stream: Any) -> None:
        """Records that a queue is about to put work on its stream."""
        self._busy[stream.handle] = stream

    def follow(self) -> None:
        """Lets later work on this stream wait for the present work of all queues."""
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
    """A memory pool of a device that keeps free blocks: mapping memory anew takes 0.1 to 1 ms.

    It is not the device's default pool, which CuPy and PyTorch's cudaMallocAsync may use. They choose how much that pool keeps,
    and its memory is not this package's to count or release. Used in the owner's thread; raises PyCUDA's errors.
    """

    def __init__(self, ordinal: int, behind: Behind):
        self._behind, self._pool = behind, ctypes.c_void_p()
        wanted = Properties(allocation=PINNED, location=ON_A_DEVICE, number=ordinal)
        check("cuMemPoolCreate", libcuda().cuMemPoolCreate(ctypes.byref(self._pool), ctypes.byref(wanted)))
        keep = ctypes.c_uint64(EVERYTHING)
        status = libcuda().cuMemPoolSetAttribute(self._pool, RELEASE_THRESHOLD, ctypes.byref(keep))
        check("cuMemPoolSetAttribute", status)

    def take(self, size: int) -> int:
        """Returns the address of so many bytes, usable by work queued later.

        If memory runs out, the pool is trimmed first: free pieces that are too small may block the allocation.
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
        """Frees a block in the order of the pool's stream."""
        libcuda().cuMemFreeAsync(pointer, self._behind.stream.handle)  # fails if the device is lost

    def unused(self) -> int:
        """Returns the bytes that are kept and not in use."""
        return self._attribute(RESERVED) - self._attribute(USED)

    def _attribute(self, attribute: int) -> int:
        value = ctypes.c_uint64()
        status = libcuda().cuMemPoolGetAttribute(self._pool, attribute, ctypes.byref(value))
        check("cuMemPoolGetAttribute", status)
        return value.value

    def trim(self) -> None:
        """Returns unused memory to the system, after pending frees."""
        self._behind.stream.synchronize()
        check("cuMemPoolTrimTo", libcuda().cuMemPoolTrimTo(self._pool, 0))

    def close(self) -> None:
        """Releases everything; nothing is in use."""
        self.trim()
        check("cuMemPoolDestroy", libcuda().cuMemPoolDestroy(self._pool))


class Block:
    """Bytes of a pool, allocated on creation. Deleted in the owner's thread, it is freed in the order of the pool's stream."""

    def __init__(self, pool: Pool, size: int):
        self._pool, self._pointer = pool, pool.take(size)

    def __int__(self) -> int:
        return self._pointer

    def __del__(self) -> None:
        if hasattr(self, "_pointer"):
            self._pool.give(self._pointer)


class Staging:
    """Copies between a device and memory that is not page-locked, through two alternating page-locked buffers.

    A copy starts after all work on the queues, and is complete when a method returns.
    """

    def __init__(self, buffers: tuple[NDArray[np.uint8], NDArray[np.uint8]]):
        import pycuda.driver as driver

        self._parts = [(buffer, driver.Event(driver.event_flags.DISABLE_TIMING)) for buffer in buffers]

    def write(self, pointer: int, source: NDArray[np.uint8]) -> None:
        """Copies to the device; source is contiguous."""
        import pycuda.driver as driver

        for (buffer, free), at in self._turns(source.nbytes):
            part = source[at : at + PART]
            free.synchronize()  # the buffer's previous copy is done
            buffer[: part.nbytes] = part
            driver.memcpy_htod_async(pointer + at, buffer[: part.nbytes], None)
            free.record()
        for _, free in self._parts:
            free.synchronize()

    def read(self, target: NDArray[np.uint8], pointer: int) -> None:
        """Copies from the device; target is contiguous."""
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
        """Yields a buffer with its event, and the offset of its part."""
        return ((self._parts[number % 2], at) for number, at in enumerate(range(0, size, PART)))


def _take(part: NDArray[np.uint8], buffer: NDArray[np.uint8], there: Any) -> None:
    there.synchronize()
    part[:] = buffer[: part.nbytes]
