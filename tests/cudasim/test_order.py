"""Asynchronous work that is not ordered comes out wrong, and right once it is."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests import cudasim
from tests.cudasim.isolated import Gpu, isolated

SEEDS = range(12)
N = 64


def two_streams(gpu: Gpu, with_event: bool) -> np.ndarray:
    """Copy in on one stream, compute and copy out on another."""
    copies, kernels = gpu.driver.Stream(), gpu.driver.Stream()
    x, y = gpu.locked(np.arange(N)), gpu.locked(np.zeros(N))
    dx, dy = gpu.driver.mem_alloc(x.nbytes), gpu.driver.mem_alloc(x.nbytes)
    gpu.driver.memcpy_htod_async(dx, x, copies)
    if with_event:
        kernels.wait_for_event(gpu.driver.Event().record(copies))
    gpu.kernel("twice", "PPi").prepared_async_call((2, 1), (32, 1, 1), kernels, dy, dx, N)
    gpu.driver.memcpy_dtoh_async(y, dy, kernels)
    kernels.synchronize()
    result = y.copy()
    copies.synchronize()
    return result


@isolated()
def test_missing_event_between_streams(gpu: Gpu):
    """Without the event nearly every order gives NaN, with it none does."""
    wrong = 0
    for number in SEEDS:
        cudasim.seed(number)
        wrong += not np.array_equal(two_streams(gpu, with_event=False), 2 * np.arange(N))
        np.testing.assert_array_equal(two_streams(gpu, with_event=True), 2 * np.arange(N))
    assert wrong >= 0.8 * len(SEEDS)
    assert cudasim.problems() == []


def summed(gpu: Gpu, wait: bool) -> np.ndarray:
    """Three batches go through one page-locked buffer."""
    stream, buffer, total = gpu.driver.Stream(), gpu.locked(np.zeros(N)), gpu.to_device(np.zeros(N))
    dx = gpu.driver.mem_alloc(buffer.nbytes)
    for batch in (1, 10, 100):
        buffer[:] = batch
        gpu.driver.memcpy_htod_async(dx, buffer, stream)
        gpu.kernel("accumulate", "PPi").prepared_async_call((2, 1), (32, 1, 1), stream, total, dx, N)
        if wait:
            stream.synchronize()
    stream.synchronize()
    return gpu.to_host(total, N)


@isolated()
def test_page_locked_buffer_refilled_too_early(gpu: Gpu):
    """The copy reads when it runs, so the last batch is summed three times; and it is named."""
    for number in SEEDS:
        cudasim.seed(number)
        np.testing.assert_array_equal(summed(gpu, wait=True), np.full(N, 111))
    assert cudasim.problems() == []
    np.testing.assert_array_equal(summed(gpu, wait=False), np.full(N, 300))
    assert cudasim.problems()[0].startswith("race: the host wrote to the page-locked source")


@isolated()
def test_target_read_before_waiting(gpu: Gpu):
    """Until its copy has run the target is NaN; a write to it is a race."""
    stream, dx, out = gpu.driver.Stream(), gpu.to_device(np.ones(N)), gpu.locked(np.zeros(N))
    gpu.driver.memcpy_dtoh_async(out, dx, stream)
    assert np.isnan(out).all()
    stream.synchronize()
    assert (out == 1).all() and cudasim.problems() == []
    gpu.driver.memcpy_dtoh_async(out, dx, stream)
    out[3] = 7
    stream.synchronize()
    assert cudasim.problems()[0].startswith("race: the host wrote to the page-locked target")


@isolated()
def test_one_buffer_in_and_out(gpu: Gpu):
    """In one stream a buffer may be a copy's source, then another's target, whose NaN would spoil the first."""
    stream, buffer = gpu.driver.Stream(), gpu.locked(np.arange(N))
    dx, dy = gpu.driver.mem_alloc(buffer.nbytes), gpu.driver.mem_alloc(buffer.nbytes)
    for number in SEEDS:
        cudasim.seed(number)
        buffer[:] = np.arange(N)
        gpu.driver.memcpy_htod_async(dx, buffer, stream)
        gpu.kernel("twice", "PPi").prepared_async_call((2, 1), (32, 1, 1), stream, dy, dx, N)
        gpu.driver.memcpy_dtoh_async(buffer, dy, stream)
        gpu.driver.memcpy_htod_async(dx, buffer, stream)
        gpu.driver.memcpy_dtoh_async(buffer, dx, stream)
        stream.synchronize()
        np.testing.assert_array_equal(buffer, 2 * np.arange(N))
    assert cudasim.problems() == []


@isolated()
def test_default_stream(gpu: Gpu):
    """Ordinary streams are ordered with the default stream, those created with NON_BLOCKING are not."""
    wrong = 0
    for number in SEEDS:
        cudasim.seed(number)
        for flags in (0, 1):
            stream, out = gpu.driver.Stream(flags), gpu.locked(np.zeros(N))
            dx = gpu.driver.mem_alloc(out.nbytes)
            gpu.driver.memset_d32(dx, 0, N)  # on the default stream, and not waited for
            gpu.driver.memcpy_dtoh_async(out, dx, stream)
            stream.synchronize()
            assert flags or (out == 0).all()
            wrong += bool(flags and not (out == 0).all())
            gpu.driver.Context.synchronize()
    assert wrong >= 0.8 * len(SEEDS)


@isolated()
def test_pageable_memory_is_noted(gpu: Gpu):
    """An asynchronous copy with pageable memory works, as it does on a device, without being asynchronous."""
    stream, x, dx = gpu.driver.Stream(), np.ones(N, np.float32), gpu.driver.mem_alloc(4 * N)
    gpu.driver.memcpy_htod_async(dx, x, stream)
    x[:] = 2
    out = np.zeros(N, np.float32)
    gpu.driver.memcpy_dtoh_async(out, dx, stream)
    assert (out == 1).all()
    assert [line.split(":")[0] for line in cudasim.problems()] == ["pageable", "pageable"]


@isolated()
def test_query_sees_time_pass(gpu: Gpu):
    """A loop that asks until an event is done ends; its times are in order."""
    for number in SEEDS:
        cudasim.seed(number)
        stream, first, last, dx = gpu.driver.Stream(), gpu.driver.Event(), gpu.driver.Event(), gpu.to_device(np.ones(N))
        first.record(stream)
        gpu.kernel("twice", "PPi").prepared_async_call((2, 1), (32, 1, 1), stream, dx, dx, N)
        last.record(stream)
        while not last.query():
            pass
        assert stream.is_done() and 0 < first.time_till(last) < 1000


@isolated()
def test_threads_enqueue_while_one_waits(gpu: Gpu):
    """Two Python threads use one context, each its stream."""

    def work(value: int) -> np.ndarray:
        gpu.context.push()
        stream, dx, out = gpu.driver.Stream(), gpu.to_device(np.full(N, value)), gpu.locked(np.zeros(N))
        twice = gpu.kernel("twice", "PPi")
        for _ in range(20):
            twice.prepared_async_call((2, 1), (32, 1, 1), stream, dx, dx, N)
            gpu.driver.memcpy_dtoh_async(out, dx, stream)
            stream.synchronize()
        gpu.driver.Context.pop()
        return out

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(work, (1, 3)))
    assert (found[0] == 2.0**20).all() and (found[1] == 3 * 2.0**20).all()
