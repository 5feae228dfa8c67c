"""Queues over CUDA streams and their events, and what the work of a queue may call: copy, fill_bytes, scratch."""

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpu.runtime import CUDA
from gpu.runtime.array import Array, Shape
from gpu.runtime.owner import Translated

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
LEGACY = 0  # the handle of the legacy default stream, with which queues are in order
NON_BLOCKING = 1  # a stream that has nothing to do with that one, where PyTorch computes meanwhile

# The driver's functions that are called without PyCUDA, by the names that the library exports, where cuda.h renames some, and
# one letter an argument: P a pointer or a handle, a an address on the device, s a size, i int or an enumeration, u unsigned,
# U unsigned long long. An int of Python would otherwise pass as 32 bits.
KINDS = {
    "P": ctypes.c_void_p,
    "a": ctypes.c_uint64,
    "s": ctypes.c_size_t,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "U": ctypes.c_ulonglong,
}
CALLS = {
    "cuCtxSetCurrent": "P",
    "cuDriverGetVersion": "P",
    "cuEventCreate": "Pu",
    "cuEventDestroy_v2": "P",
    "cuEventRecord": "PP",
    "cuGetErrorString": "iP",
    "cuGraphDestroy": "P",
    "cuGraphExecDestroy": "P",
    "cuGraphInstantiateWithFlags": "PPU",
    "cuGraphLaunch": "PP",
    "cuMemAllocFromPoolAsync": "PsPP",
    "cuMemFreeAsync": "aP",
    "cuMemPoolCreate": "PP",
    "cuMemPoolDestroy": "P",
    "cuMemPoolGetAttribute": "PiP",
    "cuMemPoolSetAttribute": "PiP",
    "cuMemPoolTrimTo": "Ps",
    "cuStreamBeginCapture_v2": "Pi",
    "cuStreamEndCapture": "PP",
    "cuStreamWaitEvent": "PPu",
}

Note = Callable[[float, float], object]  # is told when work ran: from, to, in seconds of time.perf_counter


class Here(threading.local):
    """The queue and the device that the calling thread works for."""

    device: Any = None
    queue: Any = None


here = Here()


class Event:
    """A point on a queue; see the contract."""

    def __init__(self, queue: "Queue", future: Future[Any], note: Note | None):
        self.queue, self._future = queue, future
        self._notes = [note] if note else []

    def wait(self) -> Any:
        """Wait until the device is past the point, in any thread; return what the work returned, raise what it raised."""
        result, start, mark = self._future.result()
        device = self.queue.device
        device.wait(mark)
        with contextlib.suppress(IndexError):  # of threads that wait at the same time one takes the note
            self._notes.pop()(device.clock(start), device.clock(mark))
        return result

    def mark(self) -> Any:
        """The CUDA event, once it has been recorded on its stream."""
        return self._future.result()[2].event


class Queue:
    """A CUDA stream: its work launches kernels and copies, which the device does in order.

    After a failure the queue does no more work: everything put on it later fails with the same exception.
    """

    apart = True

    def __init__(self, device: Any, name: str):
        import pycuda.driver as driver

        self.device, self.name = device, name
        self._keep = device.guard(device.owner.call(driver.Stream), "streams", 1)
        self.scratch: dict[str, Array] = {}
        self._failure: BaseException | None = None

    @property
    def stream(self) -> Any:
        """PyCUDA's stream. Only the guard refers to it: a queue may outlive its device, and be deleted in any thread."""
        return self._keep.held[0]

    @property
    def handle(self) -> int:
        """The CUstream as a number, for torch.cuda.ExternalStream or cupy.cuda.ExternalStream."""
        return int(self.stream.handle)

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Event:
        """Do `work(*arguments)`, which launches on this queue, after its earlier work and after the events in `after`.

        note(start, end) is called by the first wait for the event, with the time when the device did the work, in seconds of
        time.perf_counter.
        """
        return Event(self, self.device.owner.submit(self._do, work, arguments, after, note), note)

    def _do(self, work: Callable[..., Any], arguments: Any, after: Sequence[Any], note: Note | None) -> Any:
        if self._failure:
            raise self._failure
        try:
            for event in after:
                self._follow(event)
            here.queue = self
            with Translated(self.device.name):
                # who waits leaves its core to other threads, unless nothing goes on apart from this work
                sleeps = self.apart and self.device.sleeps
                self.device.behind.note(self.stream)
                start = self.device.mark(self.stream, sleeps) if note else None
                result = work(*arguments)
                return result, start, self.device.mark(self.stream, sleeps)
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            here.queue = None  # a queue that is done with keeps nothing

    def _follow(self, event: Any) -> None:
        """Let later launches wait for an event: on the device for an event of the same device, else here."""
        if not isinstance(event, Event) or event.queue.device is not self.device:
            event.wait()
        elif event.queue is not self:
            self.stream.wait_for_event(event.mark())

    def copy(self, target: Any, source: Any, after: Sequence[Any] = (), note: Note | None = None) -> Event:
        """Copy between page-locked host memory and the device, or within either; shapes may differ, bytes may not."""
        return self.run(copy, target, source, after=after, note=note)

    def wait_for(self, stream: int) -> None:
        """Let later work of this queue wait for what another library has put on its CUDA stream so far."""
        self.device.owner.call(order, stream, self.handle)

    def hand_over(self, stream: int) -> None:
        """Let later work on another library's CUDA stream wait for what has been put on this queue so far."""
        self.device.owner.call(order, self.handle, stream)

    def close(self) -> None:
        """Finish what was put on the queue; nothing where the device is closed already."""
        if not self.device.closed:
            self.device.owner.call(self.stream.synchronize)


class Inline(Queue):
    """A queue whose `run` returns when the device has done the work."""

    apart = False

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Event:
        """Do the work now, on the device too."""
        event = super().run(work, *arguments, after=after, note=note)
        event.wait()
        return event


def current() -> Queue:
    """The queue whose work is being done; RuntimeError outside the work of a queue."""
    if here.queue is None:
        raise RuntimeError("gpu: kernels are launched by the work of a queue, see Queue.run in hybrid/contract.py")
    queue: Queue = here.queue
    return queue


def copy(target: Any, source: Any) -> None:
    """Copy on the current queue, between host and device or within the device; ValueError for unequal numbers of bytes."""
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


def scratch(name: str, shape: Shape, dtype: DTypeLike, zero: bool = False) -> Array:
    """Memory of the current queue under a name, kept for the next call with the same name.

    zero  it is filled with zeros when it is made; whoever uses it must leave zeros
    """
    queue = current()
    wanted = Array(0, shape, dtype, None)
    found = queue.scratch.get(name)
    if found is None or found.nbytes < wanted.nbytes:
        found = queue.scratch[name] = queue.device.empty(wanted.nbytes, np.uint8)
        if zero:
            fill_bytes(found, 0)
    return Array(found.pointer, wanted.shape, wanted.dtype, found.keep, found.ordinal)


@functools.cache
def libcuda() -> ctypes.CDLL:
    """The driver itself, for the few calls that PyCUDA does not offer."""
    found = ctypes.CDLL(CUDA)
    for name, kinds in CALLS.items():
        if function := getattr(found, name, None):  # an old driver is told to be old elsewhere
            function.argtypes = [KINDS[kind] for kind in kinds]
    return found


def order(first: int, second: int) -> None:
    """Let later work on the stream `second` wait for what has been put on the stream `first` so far.

    By the driver's own functions, because PyCUDA records events only on streams that it made.
    """
    cuda, event = libcuda(), ctypes.c_void_p()
    check("cuEventCreate", cuda.cuEventCreate(ctypes.byref(event), 2))  # 2: without timing
    try:
        check("cuEventRecord", cuda.cuEventRecord(event, first))
        check("cuStreamWaitEvent", cuda.cuStreamWaitEvent(second, event, 0))
    finally:
        cuda.cuEventDestroy_v2(event)  # by the driver once it is past


def check(name: str, status: int) -> None:
    """Raise what PyCUDA raises for the answer of a function of the driver, unless that is 0."""
    import pycuda.driver as driver

    if status == OUT_OF_MEMORY:
        raise driver.MemoryError(f"{name} failed: out of memory")
    if status:
        said = ctypes.c_char_p()
        libcuda().cuGetErrorString(status, ctypes.byref(said))
        raise driver.Error(f"{name} failed: {(said.value or b'error %d' % status).decode()}")


# Work that comes again with the same arrays and numbers: a CUDA graph of all that it puts on a queue, launched at once.

MOST = 64  # graphs of a recorder
THREAD_LOCAL = 1  # other threads may do what they like while this one records


class Recorder:
    """Does pieces of work that come again; see the contract.

    The first time of a key the work is done as ever: memory is taken, kernels are compiled. The second time it is recorded.
    """

    def __init__(self, device: Any):
        self._device = device
        self._graphs: dict[Hashable, Graph | None] = {}

    def run(self, key: Hashable, work: Callable[..., Any], *arguments: Any) -> None:
        """Do `work(*arguments)` in the work of a queue; what was done under the key before is done again, as it was."""
        queue = current()
        mine = key, queue
        if mine in self._graphs:
            graph = self._graphs[mine] = self._graphs[mine] or Graph(queue, work, *arguments)
            graph.launch(queue)
        else:
            work(*arguments)
            if len(self._graphs) == MOST:
                self._graphs.clear()
            self._graphs[mine] = None


class Graph:
    """What some work puts on a queue, recorded, and not done yet.

    The work must need no new memory. What it raises is raised, and nothing is done; DeviceError where it does what cannot be
    recorded, such as waiting.
    """

    def __init__(self, queue: Queue, work: Callable[..., Any], *arguments: Any):
        self._scratch = dict(queue.scratch)  # a later piece of work may take more under a name: then this stays as well
        self._keep = queue.device.guard(_Executable(_recorded(queue, work, *arguments)), "graphs", 1)

    def launch(self, queue: Queue) -> None:
        """Do all of it on the queue."""
        status = libcuda().cuGraphLaunch(self._keep.held[0].handle, ctypes.c_void_p(queue.handle))
        check("cuGraphLaunch", status)


class _Executable:
    """A CUgraphExec, destroyed with this object."""

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = handle

    def __del__(self) -> None:
        libcuda().cuGraphExecDestroy(self.handle)


class _Recording(Queue):
    """Stands for a queue whose work is recorded: its memory, and a stream of its own."""

    def __init__(self, queue: Queue):
        import pycuda.driver as driver

        self.device, self.name, self.scratch = queue.device, queue.name, queue.scratch
        self._keep = queue.device.guard(driver.Stream(NON_BLOCKING), "streams", 1)


def _recorded(queue: Queue, work: Callable[..., Any], *arguments: Any) -> ctypes.c_void_p:
    cuda, graph, made = libcuda(), ctypes.c_void_p(), ctypes.c_void_p()
    recording = _Recording(queue)
    stream = ctypes.c_void_p(recording.handle)
    check("cuStreamBeginCapture", cuda.cuStreamBeginCapture_v2(stream, THREAD_LOCAL))
    try:
        here.queue = recording
        try:
            work(*arguments)
        finally:
            here.queue = queue
            ended = cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
        check("cuStreamEndCapture", ended)
        status = cuda.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0))
        check("cuGraphInstantiateWithFlags", status)
    finally:
        if graph.value:
            cuda.cuGraphDestroy(graph)
    return made
