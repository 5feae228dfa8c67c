"""A CUDA device: its primary context, its memory, page-locked host memory and its clock.

PyTorch and CuPy use the same primary context, so memory and streams can be shared with them. One thread, the device's owner,
makes all driver calls; each thread waits for events itself.

Streams are "blocking" in CUDA's sense: they synchronise with the legacy default stream, which PyTorch uses by default.
"""

import atexit
import collections
import ctypes
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu.runtime.array import Array, Guard, Held, Shape, adopt
from gpu.runtime.memory import PART, Behind, Block, Pool, Staging
from gpu.runtime.owner import DeviceError, Owner, Translated, failed
from gpu.runtime.queues import Event, Inline, Queue, Recorder, copy, current, here, libcuda, scratch

__all__ = [
    "Device",
    "DeviceError",
    "Event",
    "Queue",
    "Recorder",
    "copy",
    "current",
    "failed",
    "scratch",
    "too_old",
]

REBASE = 30.0  # seconds; CUDA's float32 event times lose precision beyond
LEAST = (7, 5)  # compute capability of Turing, the oldest that nvcc 13 supports


def too_old(cuda: Any) -> str | None:
    """Returns the reason why a PyCUDA device cannot run the kernels; None if it can."""
    found = cuda.compute_capability()
    if found < LEAST:
        return f"{cuda.name()} has compute capability {found[0]}.{found[1]}, the kernels need {LEAST[0]}.{LEAST[1]}"
    return None


class Device:
    """CUDA device number `ordinal`.

    precision  of products of matrices: "fp32"; "tf32": on tensor cores, with factors rounded to 10 bits; "bf16": likewise,
               and a step of a full softmax has factors and logits of bfloat16

    Raises DeviceError for a device that does not exist or does not start.
    """

    host_memory = float64 = threads = False

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self.owner.closed

    def __init__(self, ordinal: int = 0, precision: str = "fp32"):
        self.precision = precision
        self.ordinal, self.name = ordinal, f"cuda:{ordinal}"
        self.owner = Owner(self.name)
        # Bytes of memory, number of streams and graphs
        self.allocated: collections.Counter[str] = collections.Counter()
        self.modules: dict[str, Any] = {}  # compiled kernels, see gpu/runtime/kernels.py
        self.libraries: dict[str, Any] = {}  # handles of libraries, see gpu/runtime/blas.py
        self.held: dict[int, Held] = {}  # allocations in use
        self._leaving: collections.deque[tuple[_Mark, Held]] = collections.deque()  # freed once their mark has passed
        self._marks: dict[bool, collections.deque[Any]] = {True: collections.deque(), False: collections.deque()}
        self.owner.call(self._start)
        atexit.register(self.close)

    def _start(self) -> None:
        try:
            self._set_up()
        except BaseException:
            _abandon(self)
            self.owner.close(end=False)
            raise

    def _set_up(self) -> None:
        import pycuda.driver as driver

        driver.init()
        if self.ordinal >= driver.Device.count():
            raise DeviceError(f"{self.name}: there are {driver.Device.count()} devices, numbered from 0")
        self.cuda = driver.Device(self.ordinal)
        if old := too_old(self.cuda):
            raise DeviceError(f"{self.name}: {old}")
        self.context = self.cuda.retain_primary_context()
        self.context.push()
        attribute = driver.device_attribute
        self.capability = self.cuda.compute_capability()
        self.multiprocessors = self.cuda.get_attribute(attribute.MULTIPROCESSOR_COUNT)
        self.shared_block = self.cuda.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        self.shared_multiprocessor = self.cuda.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
        self._driver_memory = driver.DeviceAllocation
        self.behind = Behind()
        pools = self.cuda.get_attribute(attribute.MEMORY_POOLS_SUPPORTED)
        self._pool = Pool(self.ordinal, self.behind) if pools else None
        here.device = self
        self._staging: Staging | None = Staging((self._host_empty(PART, np.uint8), self._host_empty(PART, np.uint8)))
        origin = self.mark(None)
        origin.event.synchronize()
        self._origin: tuple[_Mark, float] = origin, time.perf_counter()

    def queue(self, name: str, threads: int) -> Queue:
        """Returns a new stream; `threads` applies to CPUs only."""
        return Queue(self, name)

    def inline(self, name: str, threads: int) -> Inline:
        """Returns a queue whose work is done when `run` returns."""
        return Inline(self, name)

    def recorder(self) -> Recorder:
        """Returns a recorder that repeats work with one launch."""
        return Recorder(self)

    # Memory

    def empty(self, shape: Shape, dtype: DTypeLike) -> Array:
        """Returns an uninitialised array on the device; MemoryError, with the free memory, if it does not fit."""
        return self.owner.call(self._empty, shape, dtype)

    def _empty(self, shape: Shape, dtype: DTypeLike) -> Array:
        import pycuda.driver as driver

        array = Array(0, shape, dtype, None, self.ordinal)
        with Translated(self.name, f"an array {array.shape} of {array.dtype}, {array.nbytes / 1e6:,.1f} MB"):
            whole = max(array.nbytes, 1)
            memory = Block(self._pool, whole) if self._pool else driver.mem_alloc(whole)
        array.pointer, array.keep = int(memory), self.guard(memory, "device", array.nbytes)
        return array

    def host_empty(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        """Returns an uninitialised NumPy array in page-locked memory, for asynchronous copies by the device."""
        return self.owner.call(self._host_empty, shape, dtype)

    def _host_empty(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        import pycuda.driver as driver

        dtype = np.dtype(dtype)
        count = int(np.prod(shape))
        with Translated(self.name, f"a page-locked array {shape} of {dtype}"):
            memory = driver.pagelocked_empty(max(count * dtype.itemsize, 1), np.uint8)
        # NumPy keeps the block alive, not PyCUDA's memory itself, which the guard lets the owner free.
        block = (ctypes.c_uint8 * memory.nbytes).from_address(memory.ctypes.data)
        block.keep = self.guard(memory, "page-locked", memory.nbytes)
        return np.frombuffer(block, dtype, count).reshape(shape)

    def guard(self, thing: Any, kind: str, size: int) -> Any:
        """Returns an object that keeps `thing` alive. When it is deleted, in any thread, the owner frees the thing."""
        held = Held([thing])
        guard = Guard(held)
        self.held[id(held)] = held
        self.allocated[kind] += size
        weakref.finalize(guard, _forget, weakref.ref(self), self.owner, held, kind, size).atexit = False
        return guard

    def mirror(self, array: NDArray[Any]) -> Array:
        """Returns an uninitialised device array of a NumPy array's shape and dtype."""
        return self.empty(array.shape, array.dtype)

    def from_host(self, array: NDArray[Any]) -> Array:
        """Returns a copy of a NumPy array on the device; complete when this returns."""
        target = self.empty(array.shape, array.dtype)
        self.write(target, array)
        return target

    def write(self, array: Array, source: NDArray[Any]) -> None:
        """Copies a NumPy array to a device array, after all earlier work of the device's queues."""
        self.owner.call(self._copy_now, array, np.ascontiguousarray(source))

    def copy(self, target: Any, source: Any) -> None:
        """Copies between page-locked host memory and the device, or within it, within the work of a queue."""
        copy(target, source)

    def to_host(self, array: Array) -> NDArray[Any]:
        """Returns a NumPy copy of a device array, after all earlier work of the device's queues."""
        target = np.empty(array.shape, array.dtype)
        self.owner.call(self._copy_now, target, array)
        return target

    def _copy_now(self, target: Any, source: Any) -> None:
        if self._staging is None:
            raise RuntimeError(f"{self.name} is closed")
        if isinstance(target, np.ndarray):
            self._staging.read(target.reshape(-1).view(np.uint8), source.pointer)
        else:
            self._staging.write(target.pointer, source.reshape(-1).view(np.uint8))

    def free(self, held: Held) -> None:
        """Frees a thing once no work needs it; called in the owner's thread.

        A pool block is freed behind the work of all queues. Other things that work may still use, such as page-locked memory,
        are freed by a later call, once that work has passed. Memory without a pool, or shared with another library, may be in
        use by other streams, so all work of the context is awaited.
        """
        if not held:
            return  # the device has been closed
        self.held.pop(id(held), None)  # not earlier: `_stop` frees what remains, and this may run after it
        try:
            if held.lent or isinstance(held[0], self._driver_memory):
                self.context.synchronize()
                held.clear()
            else:
                self.behind.follow()
                if isinstance(held[0], Block):
                    held.clear()
                else:
                    self._leaving.append((self.mark(self.behind.stream), held))
            while self._leaving and self._leaving[0][0].event.query():
                self._leaving.popleft()[1].clear()
        except BaseException:
            _abandon(held)
            raise

    def adopt(self, foreign: Any) -> Array:
        """Returns a view of an array of PyTorch, CuPy, JAX or Numba on this device, see gpu/runtime/array.py."""
        return adopt(foreign, self.ordinal)

    def memory(self) -> dict[str, int]:
        """Returns bytes: "device" and "page-locked" memory of this object; "free" and "total" memory of the device.

        Free includes the free memory of this object's pool, which other libraries cannot use.
        """
        free, total = self.owner.call(self._room)
        held = {name: self.allocated[name] for name in ("device", "page-locked")}
        return held | {"free": free, "total": total}

    def _room(self) -> tuple[int, int]:
        import pycuda.driver as driver

        free, total = driver.mem_get_info()
        return free + (self._pool.unused() if self._pool else 0), total

    # Time

    def mark(self, stream: Any, sleeps: bool = False) -> "_Mark":
        """Returns a CUDA event recorded on the stream; call it in the owner's thread.

        sleeps  waiting threads yield their core, else they may spin, which ends some microseconds earlier
        """
        import pycuda.driver as driver

        stock = self._marks[sleeps]
        flags = driver.event_flags.BLOCKING_SYNC if sleeps else driver.event_flags.DEFAULT
        mark = _Mark(stock.popleft() if stock else driver.Event(flags), stock)
        mark.event.record(stream)  # if the device is lost, the event returns to the stock, which is never destroyed
        return mark

    def clock(self, mark: "_Mark") -> float:
        """Returns the time when the device reached a mark, in seconds of time.perf_counter; the mark has passed."""
        origin, seconds = self._origin
        elapsed = 1e-3 * float(origin.event.time_till(mark.event))
        if elapsed > REBASE:
            self._origin = mark, seconds + elapsed
        return seconds + elapsed

    def wait(self, mark: "_Mark") -> None:
        """Blocks the calling thread until the device has passed the mark."""
        if self.closed:
            return
        if here.device is not self:  # an earlier device's context may be gone, though the number is the same
            libcuda().cuCtxSetCurrent(ctypes.c_void_p(self.context.handle))
            here.device = self
        with Translated(self.name):
            mark.event.synchronize()

    def close(self) -> None:
        """Finishes all queues and releases the context; arrays of this device must not be used afterwards."""
        atexit.unregister(self.close)
        if self.closed:
            return
        stopped = self.owner.submit(self._stop)
        self.owner.close(end=stopped.exception() is None)

    def _stop(self) -> None:
        try:
            self.context.synchronize()
        except BaseException:
            _abandon(self)
            raise
        everything = list(self.held.values())  # before the libraries release some of it, too late for a post
        for library in self.libraries.values():
            library.close()
        self.libraries.clear()
        for held in everything:
            held.clear()
        self._leaving.clear()
        self._staging = None
        if self._pool:
            self._pool.close()  # other libraries can use the memory
        del self._pool, self.behind
        for stock in self._marks.values():
            stock.clear()
        self.modules.clear()
        self.context.pop()
        self.context.detach()


class _Mark:
    """A CUDA event that returns to the device's stock when it is deleted, in any thread."""

    def __init__(self, event: Any, stock: collections.deque[Any]):
        self.event, self._stock = event, stock

    def __del__(self) -> None:
        self._stock.append(self.event)


def _forget(device: "Callable[[], Device | None]", owner: Owner, held: Held, kind: str, size: int) -> None:
    """Frees a held thing in the owner's thread: queues keep nothing alive."""
    if alive := device():
        alive.allocated[kind] -= size
        owner.post(alive.free, held)


def _abandon(thing: Any) -> None:
    """Leaks an object whose device is lost: nothing can be released, and PyCUDA would warn about each part."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
