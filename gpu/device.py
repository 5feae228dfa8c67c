"""A CUDA device: its primary context, queues over streams, events, device and page-locked memory.

The primary context is the one that PyTorch and CuPy use in the same process, so memory and streams can be shared with them.
All calls of the driver are made by one thread, the device's owner, whoever asks; only waiting is done where it is asked for.

Streams are "blocking" in CUDA's sense: work on the legacy default stream, where PyTorch computes unless told otherwise,
and work on a queue wait for each other.
"""

import atexit
import collections
import contextlib
import ctypes
import functools
import threading
import time
import weakref
from concurrent.futures import Future
from typing import Any

import numpy as np

from gpu.array import Array, adopt
from gpu.owner import Owner

CUDA = "libcuda.so.1"
REBASE = 30.0  # seconds; CUDA tells times between events in float32
LEAST = (7, 5)  # compute capability: Turing; nvcc 13 compiles for nothing older


class DeviceError(OSError):
    """The device or its driver failed; what was on the device is lost, what is on the host stands."""


def failed(name: str, error) -> DeviceError:
    """What to raise when the driver, or a library on the device `name`, answers with an error."""
    return DeviceError(
        f"{name}: {error}; what was on the device is lost, the last checkpoint stands; `hybrid doctor` may say more"
    )


def unavailable() -> str | None:
    """The first reason why no GPU can be used, None when one can."""
    try:
        ctypes.CDLL(CUDA)
    except OSError as error:
        return f"there is no NVIDIA driver ({error})"
    try:
        import pycuda.driver as driver
    except ImportError as error:
        return f"PyCUDA cannot be imported ({error}); install it: pip install 'hybrid-engine[gpu]'"
    try:
        driver.init()
        count, version = driver.Device.count(), driver.get_driver_version()
    except driver.Error as error:
        return f"the NVIDIA driver does not start ({error})"
    if not count:
        return "the NVIDIA driver sees no device"
    return _too_old(driver.Device(0)) or _no_compiler(version // 1000) or _no_blas()


def _too_old(cuda) -> str | None:
    """Why a device cannot run the kernels."""
    found = cuda.compute_capability()
    if found < LEAST:
        return f"{cuda.name()} has compute capability {found[0]}.{found[1]}, the kernels need {LEAST[0]}.{LEAST[1]}"
    return None


def _no_blas() -> str | None:
    from gpu import blas

    try:
        blas.library()
    except OSError as error:
        return str(error)
    return None


def _no_compiler(supported: int) -> str | None:
    """Why kernels cannot be compiled for a driver that supports this major version of CUDA."""
    from gpu import kernels

    try:
        version = kernels.nvcc_version()
    except OSError as error:
        return str(error)
    if version[0] > supported:
        newer = ".".join(map(str, version))
        return (
            f"the driver supports CUDA {supported}, older than nvcc {newer}; update the driver, or name an older nvcc in "
            "HYBRID_NVCC"
        )
    return None


class Event:
    """A point on a queue; `wait` blocks until the device is past it and raises what the work raised."""

    def __init__(self, queue: "Queue", future: Future, note):
        self.queue, self._future = queue, future
        self._notes = [note] if note else []

    def wait(self):
        """What the work returned, once the device is past the point. In any thread."""
        result, start, mark = self._future.result()
        device = self.queue.device
        device.wait(mark)
        with contextlib.suppress(IndexError):  # of threads that wait at the same time one takes the note
            self._notes.pop()(device.clock(start), device.clock(mark))
        return result

    def mark(self):
        """The CUDA event, once it is on its stream."""
        return self._future.result()[2].event


class Queue:
    """A CUDA stream: work put on it launches kernels and copies, which the device does in order.

    After a failure the queue takes no more work: everything put on it later fails with the same exception.
    """

    def __init__(self, device: "Device", name: str):
        import pycuda.driver as driver

        self.device, self.name = device, name
        self._keep = device.guard(device.owner.call(driver.Stream), "streams", 1)
        self.scratch: dict[str, Array] = {}
        self._failure: BaseException | None = None

    @property
    def stream(self):
        """PyCUDA's stream, which the guard alone keeps: a queue may outlive its device, and be forgotten in any thread."""
        return self._keep.held[0]

    @property
    def handle(self) -> int:
        """The CUstream as a number, for torch.cuda.ExternalStream or cupy.cuda.ExternalStream."""
        return self.stream.handle

    def run(self, work, *arguments, after=(), note=None) -> Event:
        """Do `work(*arguments)`, which launches on this queue, after its earlier work and after the events in `after`.

        note(start, end) is called, once a wait for the event knows it, with the seconds of time.perf_counter between which
        the device did the work.
        """
        return Event(self, self.device.owner.submit(self._do, work, arguments, after, note), note)

    def _do(self, work, arguments, after, note):
        if self._failure:
            raise self._failure
        try:
            for event in after:
                self._follow(event)
            _here.queue = self
            with _Translated(self.device):
                start = self.device.mark(self.stream) if note else None
                result = work(*arguments)
                return result, start, self.device.mark(self.stream)
        except BaseException as failure:
            self._failure = failure
            raise

    def _follow(self, event) -> None:
        """What is launched from here on comes after an event: on the device where the event is one of its own."""
        if not isinstance(event, Event) or event.queue.device is not self.device:
            event.wait()
        elif event.queue is not self:
            self.stream.wait_for_event(event.mark())

    def copy(self, target, source, after=(), note=None) -> Event:
        """Copy between page-locked host memory and the device, or within either; shapes may differ, bytes may not."""
        return self.run(copy, target, source, after=after, note=note)

    def wait_for(self, stream: int) -> None:
        """What is put on this queue from here on comes after what another library's CUDA stream holds now."""
        self.device.owner.call(_order, stream, self.handle)

    def hand_over(self, stream: int) -> None:
        """What is put on another library's CUDA stream from here on comes after what this queue holds now."""
        self.device.owner.call(_order, self.handle, stream)

    def close(self) -> None:
        """Finish what was put on the queue; one whose device is closed has nothing left to do."""
        if not self.device.closed:
            with _Translated(self.device):
                self.device.owner.call(self.stream.synchronize)


class Inline(Queue):
    """A queue that the caller waits for after every piece of work."""

    def run(self, work, *arguments, after=(), note=None) -> Event:
        """Do the work now, on the device too."""
        event = super().run(work, *arguments, after=after, note=note)
        event.wait()
        return event


class Device:
    """Where arrays live and queues run: CUDA device number `ordinal`.

    tf32: matrices are multiplied by the tensor cores, with factors rounded to 10 bits; otherwise in fp32.
    Raises DeviceError for a device that is not there or does not start.
    """

    shares_host = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.owner.closed

    def __init__(self, ordinal: int = 0, tf32: bool = False):
        self.tf32 = tf32
        self.ordinal, self.name = ordinal, f"cuda:{ordinal}"
        self.owner = Owner(self.name)
        self.allocated: collections.Counter = collections.Counter()  # bytes of memory, number of streams
        self.modules: dict[str, Any] = {}  # compiled kernels, see gpu/kernels.py
        self.libraries: dict[str, Any] = {}  # handles of libraries, see gpu/blas.py
        self.held: dict[int, list] = {}  # what PyCUDA allocated and nobody has forgotten yet
        self._marks: collections.deque = collections.deque()
        self.owner.call(self._start)
        atexit.register(self.close)

    def _start(self):
        import pycuda.driver as driver

        with _Translated(self):
            driver.init()
            if self.ordinal >= driver.Device.count():
                raise DeviceError(f"{self.name}: there are {driver.Device.count()} devices, numbered from 0")
            self.cuda = driver.Device(self.ordinal)
            if old := _too_old(self.cuda):
                raise DeviceError(f"{self.name}: {old}")
            self.context = self.cuda.retain_primary_context()
            self.context.push()
        attribute = driver.device_attribute
        self.capability = self.cuda.compute_capability()
        self.multiprocessors = self.cuda.get_attribute(attribute.MULTIPROCESSOR_COUNT)
        self.shared_block = self.cuda.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        self.shared_multiprocessor = self.cuda.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
        _here.device = self
        origin = self.mark(None)
        origin.event.synchronize()
        self._origin = origin, time.perf_counter()

    def queue(self, name: str, threads: int, cores=None) -> Queue:
        """A new stream; `threads` and `cores` are those of a CPU, of which a stream has none."""
        return Queue(self, name)

    def inline(self, name: str, threads: int) -> Inline:
        """A queue whose work is done when `run` returns."""
        return Inline(self, name)

    # Memory

    def empty(self, shape, dtype) -> Array:
        """An uninitialised array on the device; MemoryError, with what is free, where it does not fit."""
        return self.owner.call(self._empty, shape, dtype)

    def _empty(self, shape, dtype):
        import pycuda.driver as driver

        array = Array(0, shape, dtype, None)
        with _Translated(self, f"an array {array.shape} of {array.dtype}, {array.nbytes / 1e6:,.1f} MB"):
            memory = driver.mem_alloc(max(array.nbytes, 1))
        array.pointer, array.keep = int(memory), self.guard(memory, "device", array.nbytes)
        return array

    def host_empty(self, shape, dtype) -> np.ndarray:
        """An uninitialised NumPy array in page-locked memory, from which the device copies asynchronously."""
        return self.owner.call(self._host_empty, shape, dtype)

    def _host_empty(self, shape, dtype):
        import pycuda.driver as driver

        dtype = np.dtype(dtype)
        count = int(np.prod(shape))
        with _Translated(self, f"a page-locked array {shape} of {dtype}"):
            memory = driver.pagelocked_empty(max(count * dtype.itemsize, 1), np.uint8)
        # NumPy keeps the block alive, not PyCUDA's memory itself, whose end the guard leaves to the owner.
        block = (ctypes.c_uint8 * memory.nbytes).from_address(memory.ctypes.data)
        block.keep = self.guard(memory, "page-locked", memory.nbytes)
        return np.frombuffer(block, dtype, count).reshape(shape)

    def guard(self, thing, kind: str, size: int) -> Any:
        """What keeps a thing of PyCUDA's until it is itself forgotten, in whatever thread; the owner frees it then."""
        held = [thing]
        guard = _Guard(held)
        self.held[id(held)] = held
        self.allocated[kind] += size
        weakref.finalize(guard, _forget, weakref.ref(self), self.owner, held, kind, size).atexit = False
        return guard

    def mirror(self, array) -> Array:
        """Room on the device for a NumPy array, uninitialised."""
        return self.empty(array.shape, array.dtype)

    def from_host(self, array) -> Array:
        """A copy of a NumPy array on the device, there when this returns."""
        target = self.empty(array.shape, array.dtype)
        self.write(target, array)
        return target

    def write(self, array: Array, source) -> None:
        """Copy a NumPy array into one of the device, once all that the device has been given is done."""
        self.owner.call(self._copy_now, array, np.ascontiguousarray(source))

    def copy(self, target, source) -> None:
        """Copy between page-locked host memory and the device, or within it, within the work of a queue."""
        copy(target, source)

    def to_host(self, array: Array) -> np.ndarray:
        """A copy of a device array, once all that the device has been given is done."""
        target = np.empty(array.shape, array.dtype)
        self.owner.call(self._copy_now, target, array)
        return target

    def _copy_now(self, target, source):
        import pycuda.driver as driver

        with _Translated(self):
            self.context.synchronize()
            if isinstance(target, np.ndarray):
                driver.memcpy_dtoh(target, source.pointer)
            elif target.nbytes:
                driver.memcpy_htod(target.pointer, source)

    def adopt(self, foreign) -> Array:
        """A view of an array of PyTorch, CuPy or Numba on this device, see gpu/array.py."""
        return adopt(foreign)

    def memory(self) -> dict[str, int]:
        """Bytes: held by this object on the device and page-locked, free on the device, and the device's total."""
        import pycuda.driver as driver

        free, total = self.owner.call(driver.mem_get_info)
        held = {name: self.allocated[name] for name in ("device", "page-locked")}
        return held | {"free": free, "total": total}

    # Time

    def mark(self, stream):
        """A CUDA event on the stream; in the owner's thread."""
        import pycuda.driver as driver

        event = self._marks.popleft() if self._marks else driver.Event()
        event.record(stream)
        return _Mark(event, self._marks)

    def clock(self, mark: "_Mark") -> float:
        """When the device was at a mark that is past, in seconds of time.perf_counter."""
        origin, seconds = self._origin
        elapsed = 1e-3 * origin.event.time_till(mark.event)
        if elapsed > REBASE:
            self._origin = mark, seconds + elapsed
        return seconds + elapsed

    def wait(self, mark: "_Mark") -> None:
        """Block the calling thread until the device is past the mark."""
        if self.closed:
            return
        if _here.device is None or _here.device.ordinal != self.ordinal:
            _libcuda().cuCtxSetCurrent(ctypes.c_void_p(self.context.handle))
            _here.device = self
        with _Translated(self):
            mark.event.synchronize()

    def close(self) -> None:
        """Finish all queues and give the context back; arrays of this device are void afterwards."""
        atexit.unregister(self.close)
        if self.closed:
            return
        stopped = self.owner.submit(self._stop)
        self.owner.close(end=stopped.exception() is None)

    def _stop(self):
        try:
            self.context.synchronize()
        except BaseException:
            _abandon(self)
            raise
        everything = list(self.held.values())  # before the libraries forget some of it, too late for a post
        for library in self.libraries.values():
            library.close()
        self.libraries.clear()
        for held in everything:
            held.clear()
        self._marks.clear()
        self.modules.clear()
        self.context.pop()
        self.context.detach()


class _Mark:
    """A CUDA event that goes back to the device's stock when it is forgotten, in whatever thread."""

    def __init__(self, event, stock: collections.deque):
        self.event, self._stock = event, stock

    def __del__(self):
        self._stock.append(self.event)


class _Guard:
    """Something that can be forgotten; `held` has the thing until the device is closed."""

    def __init__(self, held: list):
        self.held = held


def _forget(device, owner: Owner, held: list, kind: str, size: int) -> None:
    """Free what is held, in the owner's thread, once no work can use it any more: a queue keeps nothing alive."""
    if alive := device():
        alive.allocated[kind] -= size
        del alive.held[id(held)]
        owner.post(_free, alive.context, held)


def _free(context, held: list) -> None:
    try:
        context.synchronize()
    except BaseException:
        _abandon(held)
        raise
    held.clear()


def _abandon(thing) -> None:
    """Never destroy a thing whose device is lost: there is nothing to give back, and PyCUDA would complain of each part."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class _Here(threading.local):
    """The queue and the device that the calling thread works for."""

    device: Any = None
    queue: Any = None


_here = _Here()


def current() -> Queue:
    """The queue whose work the caller is; RuntimeError outside the work of a queue."""
    if _here.queue is None:
        raise RuntimeError("gpu: kernels are launched by the work of a queue, see Queue.run in hybrid/contract.py")
    return _here.queue


def copy(target, source) -> None:
    """Copy on the current queue, from where the caller's arrays lie to where they should."""
    import pycuda.driver as driver

    stream = current().stream
    if target.nbytes != source.nbytes:
        raise ValueError(f"copy: {source.nbytes} bytes into {target.nbytes}")
    if not target.nbytes:
        return
    if isinstance(source, np.ndarray):
        driver.memcpy_htod_async(target.pointer, source, stream)
    elif isinstance(target, np.ndarray):
        driver.memcpy_dtoh_async(target, source.pointer, stream)
    elif target.pointer != source.pointer:
        driver.memcpy_dtod_async(target.pointer, source.pointer, source.nbytes, stream)


def fill_bytes(target: Array, value: int) -> None:
    """Set every byte of a device array, on the current queue."""
    import pycuda.driver as driver

    if target.nbytes:
        driver.memset_d8_async(target.pointer, value, target.nbytes, current().stream)


def scratch(name: str, shape, dtype, zero: bool = False) -> Array:
    """Memory of the current queue under a name, at least of this size, kept for the next call with the same name.

    zero: it begins as zeros; who uses it leaves zeros behind.
    """
    queue = current()
    wanted = Array(0, shape, dtype, None)
    found = queue.scratch.get(name)
    if found is None or found.nbytes < wanted.nbytes:
        found = queue.scratch[name] = queue.device.empty(wanted.nbytes, np.uint8)
        if zero:
            fill_bytes(found, 0)
    return Array(found.pointer, wanted.shape, wanted.dtype, found.keep)


@functools.cache
def _libcuda() -> ctypes.CDLL:
    return ctypes.CDLL(CUDA)


def _order(first: int, second: int) -> None:
    """Work put on the stream `second` from here on comes after what the stream `first` holds now.

    Through the driver itself, because PyCUDA records events on streams of its own only.
    """
    cuda, event = _libcuda(), ctypes.c_void_p()
    _check(cuda.cuEventCreate(ctypes.byref(event), 2))  # 2: without timing
    _check(cuda.cuEventRecord(event, ctypes.c_void_p(first)))
    _check(cuda.cuStreamWaitEvent(ctypes.c_void_p(second), event, 0))
    _check(cuda.cuEventDestroy_v2(event))


def _check(status: int) -> None:
    if status:
        raise DeviceError(f"the CUDA driver answers with error {status}")


class _Translated:
    """Errors of the driver become MemoryError or DeviceError, with the device, what was asked for and the remedy."""

    def __init__(self, device: Device, wanted: str = ""):
        self._device, self._wanted = device, wanted

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        import pycuda.driver as driver

        if not isinstance(error, driver.Error):
            return
        name = self._device.name
        if isinstance(error, driver.MemoryError):
            raise MemoryError(f"{name}: no room for {self._wanted or 'what a kernel needs'}{_room()}") from error
        raise failed(name, error) from error


def _room() -> str:
    """How much memory of the current device is free, in words."""
    import pycuda.driver as driver

    try:
        free, total = driver.mem_get_info()
    except driver.Error:
        return ""
    return f"; {free / 1e6:,.1f} of {total / 1e6:,.1f} MB are free"
