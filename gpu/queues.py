"""Queues over CUDA streams, their events, and what the work of a queue may do: copy, fill, take scratch memory."""

import contextlib
import ctypes
import functools
import threading
from concurrent.futures import Future
from typing import Any

import numpy as np

from gpu.array import Array
from gpu.errors import DeviceError, Translated

CUDA = "libcuda.so.1"


class Here(threading.local):
    """The queue and the device that the calling thread works for."""

    device: Any = None
    queue: Any = None


here = Here()


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

    def __init__(self, device: Any, name: str):
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
            here.queue = self
            with Translated(self.device.name):
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
            with Translated(self.device.name):
                self.device.owner.call(self.stream.synchronize)


class Inline(Queue):
    """A queue that the caller waits for after every piece of work."""

    def run(self, work, *arguments, after=(), note=None) -> Event:
        """Do the work now, on the device too."""
        event = super().run(work, *arguments, after=after, note=note)
        event.wait()
        return event


def current() -> Queue:
    """The queue whose work the caller is; RuntimeError outside the work of a queue."""
    if here.queue is None:
        raise RuntimeError("gpu: kernels are launched by the work of a queue, see Queue.run in hybrid/contract.py")
    return here.queue


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
def libcuda() -> ctypes.CDLL:
    """The driver itself, for the few calls that PyCUDA does not offer."""
    return ctypes.CDLL(CUDA)


def _order(first: int, second: int) -> None:
    """Work put on the stream `second` from here on comes after what the stream `first` holds now.

    Through the driver itself, because PyCUDA records events on streams of its own only.
    """
    cuda, event = libcuda(), ctypes.c_void_p()
    _check(cuda.cuEventCreate(ctypes.byref(event), 2))  # 2: without timing
    _check(cuda.cuEventRecord(event, ctypes.c_void_p(first)))
    _check(cuda.cuStreamWaitEvent(ctypes.c_void_p(second), event, 0))
    _check(cuda.cuEventDestroy_v2(event))


def _check(status: int) -> None:
    if status:
        raise DeviceError(f"the CUDA driver answers with error {status}")
