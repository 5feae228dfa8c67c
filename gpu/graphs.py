"""Work that comes again with the same arrays and numbers: a CUDA graph of all that it puts on a queue, launched at once."""

import ctypes
from collections.abc import Callable, Hashable
from typing import Any

from gpu.queues import NON_BLOCKING, Queue, check, current, here, libcuda

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
