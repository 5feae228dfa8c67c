"""Work that comes again is recorded and launched at once: the same bytes, one launch, nothing left behind."""

import gc

import numpy as np
import pytest

from gpu.device import Device, DeviceError, copy, scratch
from gpu.runtime import blas, queues
from gpu.units import update
from tests import cudasim
from tests.support.fill_bytes import fill_bytes


class Steps:
    """Plain descent on a device, as work that tells how often it was called."""

    def __init__(self, gpu, value=1.0):
        self.recorder, self.calls = gpu.device.recorder(), 0
        self.weights = gpu.put(np.zeros(100, np.float32))
        self.grad, self.there = gpu.device.host_empty(100, np.float32), gpu.empty(100, np.float32)
        self.grad[:] = value

    def work(self, rate):
        self.calls += 1
        copy(self.there, self.grad)
        update(self.weights, None, self.there, rate, 0.0)

    def step(self, key, rate=1.0):
        self.recorder.run(key, self.work, rate)


def test_what_comes_again_is_called_twice_and_then_launched(gpu):
    steps = Steps(gpu)
    for count in range(1, 6):
        steps.grad[:] = -count  # arrays may hold anything
        gpu.run(steps.step, "key")
        assert gpu.get(steps.weights)[0] == count * (count + 1) / 2
        assert steps.calls == min(count, 2)


def test_keys_are_apart(gpu):
    steps = Steps(gpu)
    for rate in (1.0, 2.0, 1.0, 2.0, 1.0, 2.0):
        gpu.run(steps.step, rate, rate)
    assert steps.calls == 4 and gpu.get(steps.weights)[0] == -9


def test_a_graph_is_one_launch_of_what_was_several(gpu, simulated):
    steps = Steps(gpu)

    def work():
        for _ in range(3):
            steps.work(1.0)

    found = [cudasim.calls(gpu.run, steps.recorder.run, "key", work)["launch"] for _ in range(4)]
    assert found == [3, 3 + 1, 1, 1]
    assert gpu.get(steps.weights)[0] == -12


def test_on_another_queue_it_is_another_graph(gpu):
    steps, other = Steps(gpu), gpu.device.queue("other", 0)
    for queue in (gpu.queue, other, gpu.queue, other):
        queue.run(steps.step, "key").wait()
    assert steps.calls == 4 and gpu.get(steps.weights)[0] == -4


def test_keys_that_never_come_again_are_forgotten(gpu, monkeypatch):
    monkeypatch.setattr(queues, "MOST", 3)
    steps = Steps(gpu)
    for key in range(8):
        gpu.run(steps.step, key)
    assert len(steps.recorder._graphs) == 2 and gpu.device.allocated["graphs"] == 0


def test_graphs_go_with_what_recorded_them_and_with_the_device(gpu):
    steps = Steps(gpu)
    for _ in range(2):
        gpu.run(steps.step, "key")
    assert gpu.device.allocated["graphs"] == 1
    del steps
    gc.collect()
    assert gpu.device.allocated["graphs"] == 0
    device = Device(0)
    queue, recorder, there = device.queue("own", 0), device.recorder(), device.empty(4, np.float32)
    for _ in range(3):
        queue.run(recorder.run, "key", fill_bytes, there, 0).wait()
    assert device.allocated["graphs"] == 1
    device.close()  # a graph that is left is a problem that the simulated driver tells


def test_memory_of_a_queue_stays_for_a_graph_when_others_take_more_under_its_name(gpu):
    recorder, out = gpu.device.recorder(), gpu.empty(64, np.uint8)

    def work(size):
        found = scratch("test", size, np.uint8)
        fill_bytes(found, size)
        copy(out[:size], found)

    for _ in range(2):
        gpu.run(recorder.run, "key", work, 32)
    gpu.run(work, 64)
    gpu.run(recorder.run, "key", work, 32)
    assert gpu.get(out).tolist() == [32] * 32 + [64] * 32


def test_products_are_recorded_and_later_ones_have_their_own_stream(gpu):
    rng = np.random.default_rng(0)
    a, b = (gpu.put(rng.random((8, 8), np.float32)) for _ in range(2))
    out, other = gpu.empty((8, 8), np.float32), gpu.empty((8, 8), np.float32)
    recorder = gpu.device.recorder()
    for _ in range(3):
        gpu.run(fill_bytes, out, 255)
        gpu.run(recorder.run, "key", blas.gemm, out, a, b)
        gpu.run(blas.gemm, other, a, b)
        assert gpu.get(out).tobytes() == gpu.get(other).tobytes()
        np.testing.assert_allclose(gpu.get(out), gpu.get(a) @ gpu.get(b), rtol=1e-5)


def test_what_work_raises_while_it_is_recorded_is_raised_and_nothing_is_done(gpu):
    steps, queue = Steps(gpu), gpu.device.queue("fails", 0)

    def work():
        steps.work(1.0)
        if steps.calls == 2:
            raise ValueError("the second time")

    queue.run(steps.recorder.run, "key", work).wait()
    with pytest.raises(ValueError, match="the second time"):
        queue.run(steps.recorder.run, "key", work).wait()
    assert gpu.get(steps.weights)[0] == -1 and gpu.device.allocated["graphs"] == 0
    for _ in range(3):  # the device records others
        gpu.run(steps.step, "other")
    assert steps.calls == 4 and gpu.get(steps.weights)[0] == -4


@pytest.mark.parametrize("refused", ["empty", "synchronize"])
def test_work_that_cannot_be_recorded_says_so(gpu, refused):
    steps, queue = Steps(gpu), gpu.device.queue("fails", 0)

    def work():
        steps.work(1.0)
        gpu.device.empty(4, np.float32) if refused == "empty" else gpu.device.context.synchronize()

    queue.run(steps.recorder.run, "key", work).wait()
    with pytest.raises(DeviceError, match=r"cuda:0: .*captur"):
        queue.run(steps.recorder.run, "key", work).wait()
    assert gpu.get(steps.weights)[0] == -1


def test_a_call_of_the_driver_that_fails_is_named(gpu, simulated):
    steps, queue = Steps(gpu), gpu.device.queue("fails", 0)
    for _ in range(2):
        queue.run(steps.step, "key").wait()
    cudasim.fail("launch:1:999")
    try:
        with pytest.raises(DeviceError, match="cuda:0: cuGraphLaunch failed: unknown error"):
            queue.run(steps.step, "key").wait()
    finally:
        cudasim.fail()
