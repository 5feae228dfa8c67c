"""Queues over CUDA streams and their events, and the operations of queued work: copy, scratch."""

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
LEGACY = 0  # handle of the legacy default stream, which synchronises with the queues
NON_BLOCKING = 1  # a stream independent of the legacy one, on which PyTorch may compute meanwhile

# Driver functions that are called without PyCUDA, by exported name (cuda.h renames some), with one letter per argument: P a
# pointer or a handle, a an address on the device, s a size, i int or an enumeration, u unsigned, U unsigned long long. A Python
# int would otherwise pass as 32 bits.
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

Note = Callable[[float, float], object]  # receives the start and end time of the work, in seconds of time.perf_counter


class Here(threading.local):
    """The current queue and device of the calling thread."""

    device: Any = None
    queue: Any = None


here = Here()


class Event:
    """A point on a queue; see the contract."""

    def __init__(self, queue: "Queue", future: Future[Any], note: Note | None):
        self.queue, self._future = queue, future
        self._notes = [note] if note else []

    def wait(self) -> Any:
        """Waits, in any thread, until the device has passed the point; returns the work's result, or raises its exception."""
        result, start, mark = self._future.result()
        device = self.queue.device
        device.wait(mark)
        with contextlib.suppress(IndexError):  # only one of several concurrent waiters takes the note
            self._notes.pop()(device.clock(start), device.clock(mark))
        return result

    def mark(self) -> Any:
        """Returns the CUDA event, once it has been recorded on its stream."""
        return self._future.result()[2].event


class Queue:
    """A CUDA stream: its work launches kernels and copies, which the device executes in order.

    After a failure all later work of the queue fails with the same exception.
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
        """See the contract. The first wait for the event calls `note`, with the device's times."""
        return Event(self, self.device.owner.submit(self._do, work, arguments, after, note), note)

    def _do(self, work: Callable[..., Any], arguments: Any, after: Sequence[Any], note: Note | None) -> Any:
        if self._failure:
            raise self._failure
        try:
            for event in after:
                self._follow(event)
            here.queue = self
            with Translated(self.device.name):
                self.device.behind.note(self.stream)
                start = self.device.mark(self.stream, self.apart) if note else None
                result = work(*arguments)
                # waiting threads yield their core, unless the work is synchronous
                return result, start, self.device.mark(self.stream, self.apart)
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            here.queue = None  # an unused queue is not kept alive

    def _follow(self, event: Any) -> None:
        """Lets later launches wait for an event: on the device for an event of the same device, else on the host."""
        if not isinstance(event, Event) or event.queue.device is not self.device:
            event.wait()
        elif event.queue is not self:
            self.stream.wait_for_event(event.mark())

    def within(self, stream: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Launches work after another library's work so far on its CUDA stream; later work there waits for it."""

        def ordered() -> None:
            order(stream, self.handle)
            work(*arguments)
            order(self.handle, stream)

        self.device.owner.call(self._do, ordered, (), (), None)

    def close(self) -> None:
        """Finishes all queued work; does nothing if the device is closed."""
        if not self.device.closed:
            self.device.owner.call(self.stream.synchronize)


class Inline(Queue):
    """A queue whose `run` returns when the device has done the work."""

    apart = False

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Any] = (), note: Note | None = None
    ) -> Event:
        """Does the work now, on the device too."""
        event = super().run(work, *arguments, after=after, note=note)
        event.wait()
        return event


def current() -> Queue:
    """Returns the queue whose work is running; RuntimeError outside the work of a queue."""
    if here.queue is None:
        raise RuntimeError("gpu: kernels are launched by the work of a queue, see Queue.run in hybrid/contract.py")
    return here.queue


def copy(target: Any, source: Any) -> None:
    """Copies on the current queue, between page-locked host memory and the device, or within the device.

    Shapes may differ; ValueError unless byte counts are equal.
    """
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


def scratch(name: str, shape: Shape, dtype: DTypeLike) -> Array:
    """Returns named memory of the current queue, kept for later calls with the same name."""
    queue = current()
    wanted = Array(0, shape, dtype, None)
    found = queue.scratch.get(name)
    if found is None or found.nbytes < wanted.nbytes:
        found = queue.scratch[name] = queue.device.empty(wanted.nbytes, np.uint8)
    return Array(found.pointer, wanted.shape, wanted.dtype, found.keep, found.ordinal)


@functools.cache
def libcuda() -> ctypes.CDLL:
    """Returns the driver library, for the few calls that PyCUDA lacks."""
    found = ctypes.CDLL(CUDA)
    for name, kinds in CALLS.items():
        if function := getattr(found, name, None):  # an outdated driver is reported elsewhere
            function.argtypes = [KINDS[kind] for kind in kinds]
    return found


def order(first: int, second: int) -> None:
    """Lets later work on the stream `second` wait for the work on the stream `first` so far.

    Uses driver functions, because PyCUDA records events only on streams that it created.
    """
    cuda, event = libcuda(), ctypes.c_void_p()
    check("cuEventCreate", cuda.cuEventCreate(ctypes.byref(event), 2))  # 2: without timing
    try:
        check("cuEventRecord", cuda.cuEventRecord(event, first))
        check("cuStreamWaitEvent", cuda.cuStreamWaitEvent(second, event, 0))
    finally:
        cuda.cuEventDestroy_v2(event)  # the driver destroys it once it has passed


def check(name: str, status: int) -> None:
    """Raises PyCUDA's exception for a nonzero status of a driver function."""
    import pycuda.driver as driver

    if status == OUT_OF_MEMORY:
        raise driver.MemoryError(f"{name} failed: out of memory")
    if status:
        text = ctypes.c_char_p()
        libcuda().cuGetErrorString(status, ctypes.byref(text))
        raise driver.Error(f"{name} failed: {(text.value or b'error %d' % status).decode()}")


# Repeated work with the same arrays and numbers: a CUDA graph of all its queue operations, launched as one.

MOST = 64  # maximum number of graphs per recorder
THREAD_LOCAL = 1  # recording does not restrict other threads


class Recorder:
    """Repeats work by replaying a recording; see the contract.

    The first call for a key runs the work normally, which allocates memory and compiles kernels. The second records it.
    """

    def __init__(self, device: Any):
        self._device = device
        self._graphs: dict[Hashable, Graph | None] = {}

    def run(self, key: Hashable, work: Callable[..., Any], *arguments: Any) -> None:
        """Does `work(*arguments)` in the work of a queue, or replays the recording under the key."""
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
    """The recorded, not yet executed queue operations of some work.

    The work must need no new memory. Its exceptions propagate, and nothing is executed; DeviceError for operations that cannot
    be recorded, such as waiting.
    """

    def __init__(self, queue: Queue, work: Callable[..., Any], *arguments: Any):
        self._scratch = dict(queue.scratch)  # later work may replace a name's memory by more: this keeps the old alive
        self._keep = queue.device.guard(_Executable(_recorded(queue, work, *arguments)), "graphs", 1)

    def launch(self, queue: Queue) -> None:
        """Launches the recording on the queue."""
        status = libcuda().cuGraphLaunch(self._keep.held[0].handle, ctypes.c_void_p(queue.handle))
        check("cuGraphLaunch", status)


class _Executable:
    """A CUgraphExec, destroyed with this object."""

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = handle

    def __del__(self) -> None:
        libcuda().cuGraphExecDestroy(self.handle)


class _Recording(Queue):
    """Stands in for a queue during recording: its memory, and a stream of its own."""

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
