"""Graphs: what a stream captures comes out as the calls themselves would, in any order; what a capture forbids is refused."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests import cudasim
from tests.cudasim.isolated import Gpu, compiled, driver_call, isolated, pointer

N = 64
THREAD_LOCAL = 1
UNSUPPORTED, INVALIDATED, IMPLICIT, WRONG_THREAD, ILLEGAL_STATE, INVALID = 900, 901, 906, 908, 401, 1


class Stream:
    """A stream that captures, by the driver's own calls."""

    def __init__(self, gpu: Gpu, flags: int = 1):
        self.own = gpu.driver.Stream(flags)
        self.handle = pointer(self.own.handle)

    def begin(self) -> int:
        return driver_call("cuStreamBeginCapture_v2", self.handle, THREAD_LOCAL)

    def end(self) -> tuple[int, ctypes.c_void_p]:
        graph = ctypes.c_void_p()
        return driver_call("cuStreamEndCapture", self.handle, ctypes.byref(graph)), graph

    def launch(self, executable: ctypes.c_void_p) -> int:
        return driver_call("cuGraphLaunch", executable, self.handle)


def graph_of(stream: Stream, work: Callable[[], object]) -> ctypes.c_void_p:
    """What the work puts on the stream, ready to be launched."""
    assert stream.begin() == 0
    work()
    status, graph = stream.end()
    assert status == 0
    made = ctypes.c_void_p()
    assert driver_call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_ulonglong(0)) == 0
    assert driver_call("cuGraphDestroy", graph) == 0
    return made


def freed(*executables: ctypes.c_void_p) -> None:
    assert [driver_call("cuGraphExecDestroy", one) for one in executables] == [0] * len(executables)


class Doubling:
    """x from the host, doubled on the device, home as y."""

    def __init__(self, gpu: Gpu):
        self.gpu, self.x, self.y = gpu, gpu.locked(np.zeros(N)), gpu.locked(np.zeros(N))
        self.there, self.twice = gpu.driver.mem_alloc(self.x.nbytes), gpu.driver.mem_alloc(self.x.nbytes)

    def put(self, stream: Stream) -> None:
        """On a stream."""
        self.gpu.driver.memcpy_htod_async(self.there, self.x, stream.own)
        arguments = (self.twice, self.there, N)
        self.gpu.kernel("twice", "PPi").prepared_async_call((2, 1), (32, 1, 1), stream.own, *arguments)
        self.gpu.driver.memcpy_dtoh_async(self.y, self.twice, stream.own)


@isolated()
def test_a_graph_does_what_it_has_captured_with_what_memory_holds_when_it_runs(gpu: Gpu):
    work, captured, stream = Doubling(gpu), Stream(gpu), Stream(gpu, flags=0)
    made = graph_of(captured, lambda: work.put(captured))
    assert not work.y.any()  # nothing is done, and nothing is spoilt, while it is captured
    for number in range(8):
        cudasim.seed(number)
        work.x[:] = number + np.arange(N)
        assert cudasim.calls(stream.launch, made) == {"launch": 1}
        assert np.isnan(work.y).all()
        stream.own.synchronize()
        np.testing.assert_array_equal(work.y, 2 * (number + np.arange(N)))
    freed(made)
    assert cudasim.problems() == []


@isolated()
def test_launches_of_two_graphs_may_overtake_each_other(gpu: Gpu):
    captured, streams = Stream(gpu), (Stream(gpu), Stream(gpu))
    total, sources = gpu.driver.mem_alloc(4 * N), [gpu.to_device(np.full(N, value)) for value in (1, 10)]

    def put(source):
        gpu.driver.memcpy_dtod_async(int(total), int(source), 4 * N, captured.own)

    made = [graph_of(captured, lambda source=source: put(source)) for source in sources]
    found = set()
    for number in range(40):
        cudasim.seed(number)
        assert [stream.launch(one) for stream, one in zip(streams, made, strict=True)] == [0, 0]
        gpu.driver.Context.synchronize()
        found.add(gpu.to_host(total, 1)[0])
    assert found == {1, 10}
    freed(*made)


@isolated()
def test_launches_of_one_graph_do_not(gpu: Gpu):
    work, captured, streams = Doubling(gpu), Stream(gpu), (Stream(gpu), Stream(gpu))
    made = graph_of(captured, lambda: work.put(captured))
    for number in range(12):
        cudasim.seed(number)
        work.x[:] = 3
        assert [stream.launch(made) for stream in streams] == [0, 0]
        streams[1].own.synchronize()
        work.x[:] = 4  # the first launch, too, has read it: otherwise this is a race
        streams[0].own.synchronize()
        assert (work.y == 6).all()
    freed(made)
    assert cudasim.problems() == []


@isolated()
def test_the_host_may_not_write_to_what_a_pending_graph_reads_nor_free_what_it_needs(gpu: Gpu):
    work, stream = Doubling(gpu), Stream(gpu)
    made = graph_of(stream, lambda: work.put(stream))
    work.x[:] = 1  # between capture and launch it may
    assert stream.launch(made) == 0
    work.x[:] = 2
    stream.own.synchronize()
    assert [line.split(":")[0] for line in cudasim.problems()] == ["race"]
    cudasim.clear()
    work.there.free()
    assert stream.launch(made) == INVALID
    freed(made)
    assert cudasim.problems()[0].startswith("use_after_free")


def free(gpu: Gpu, stream: Stream) -> None:
    """PyCUDA would only warn."""
    if driver_call("cuMemFree_v2", pointer(gpu.spare)) == UNSUPPORTED:
        raise gpu.driver.Error("operation not permitted when stream is capturing")


FORBIDDEN = {
    "alloc": lambda gpu, stream: gpu.driver.mem_alloc(64),
    "locked": lambda gpu, stream: gpu.locked(np.zeros(N)),
    "free": free,
    "module": lambda gpu, stream: gpu.driver.module_from_file(str(compiled())),
    "synchronise": lambda gpu, stream: stream.own.synchronize(),
    "query": lambda gpu, stream: stream.own.is_done(),
    "synchronise another": lambda gpu, stream: gpu.driver.Stream(1).synchronize(),
    "context": lambda gpu, stream: gpu.driver.Context.synchronize(),
    "event": lambda gpu, stream: gpu.driver.Event().record(stream.own),
    "wait": lambda gpu, stream: stream.own.wait_for_event(gpu.past),
    "pageable": lambda gpu, stream: gpu.driver.memcpy_htod_async(gpu.spare, np.zeros(N, np.float32), stream.own),
}


@isolated()
def test_what_a_capture_forbids_is_refused_and_spoils_it(gpu: Gpu):
    gpu.spare, gpu.past = gpu.driver.mem_alloc(4 * N), gpu.driver.Event().record()
    gpu.past.synchronize()
    for name, forbidden in FORBIDDEN.items():
        stream = Stream(gpu)
        assert stream.begin() == 0
        with pytest.raises(gpu.driver.Error, match="not permitted when stream is capturing"):
            forbidden(gpu, stream)
        with pytest.raises(gpu.driver.Error, match="previous error during capture"):
            gpu.driver.memcpy_dtod_async(int(gpu.spare), int(gpu.spare), 4, stream.own)
        status, graph = stream.end()
        assert (name, status, graph.value) == (name, INVALIDATED, None)
        stream.own.synchronize()
    assert {line.split(":")[0] for line in cudasim.problems()} == {"pageable"}


@isolated()
def test_the_default_stream_and_a_capturing_one_that_waits_for_it(gpu: Gpu):
    there = gpu.driver.mem_alloc(4 * N)
    for flags, status in ((1, 0), (0, IMPLICIT)):
        stream = Stream(gpu, flags)
        assert stream.begin() == 0
        assert driver_call("cuMemsetD8Async", pointer(there), 0, ctypes.c_size_t(4), None) == status
        assert stream.end()[0] == (INVALIDATED if status else 0)
    assert driver_call("cuStreamBeginCapture_v2", None, THREAD_LOCAL) == UNSUPPORTED


@isolated()
def test_other_threads_may_allocate_but_not_end_a_capture(gpu: Gpu):
    def elsewhere(work: Callable[[], object]) -> object:
        with ThreadPoolExecutor(1, initializer=gpu.context.push) as pool:
            found = pool.submit(work).result()
            pool.submit(gpu.driver.Context.pop).result()
        return found

    def alloc() -> int:
        made = ctypes.c_void_p()
        return driver_call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(64))

    stream = Stream(gpu)
    assert stream.begin() == 0
    assert elsewhere(alloc) == 0
    assert elsewhere(lambda: stream.end()[0]) == WRONG_THREAD
    assert stream.begin() == ILLEGAL_STATE
    assert stream.end()[0] == INVALIDATED and stream.end()[0] == ILLEGAL_STATE


@isolated()
def test_a_graph_that_is_not_destroyed_is_a_leak(gpu: Gpu):
    work, stream = Doubling(gpu), Stream(gpu)
    kept, gone = (graph_of(stream, lambda: work.put(stream)) for _ in range(2))
    freed(gone)
    assert stream.launch(gone) == INVALID
    assert driver_call("cuGraphExecDestroy", gone) == INVALID
    assert driver_call("cuGraphDestroy", kept) == INVALID
    del work.x, work.y, work.there, work.twice
    gpu.close()
    assert cudasim.problems() == ["leak: a graph of 3 pieces of work that can be launched"]
