"""Queues, events, memory and their errors (gpu/runtime/queues.py, gpu/runtime/owner.py), on whatever device the tests have."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpu import device, units
from gpu.runtime.array import Held
from tests import cudasim
from tests.support.fill_bytes import fill_bytes

RNG = np.random.default_rng(0)


def numbers(count=1000):
    return RNG.random(count, dtype=np.float32)


def test_a_chain_over_three_queues_is_in_order(gpu):
    """Host to device on one queue, a kernel on another, home on a third; events are all that orders them."""
    given, rate = numbers(), 0.5
    copy_in, compute, copy_out = (gpu.device.queue(name, 1) for name in ("in", "dense", "out"))
    weights, gradient = gpu.put(given), gpu.empty(given.shape, np.float32)
    home, locked = (gpu.device.host_empty(1000, np.float32) for _ in range(2))
    for _ in range(5):
        locked[:] = given
        there = copy_in.run(device.copy, gradient, locked)
        moved = compute.run(units.update, weights, None, gradient, rate, 0.0, after=[there])
        copy_out.run(device.copy, home, weights, after=[moved]).wait()
    expected = given.copy()
    for _ in range(5):
        expected = np.float32(expected - np.float32(rate) * given)
    np.testing.assert_allclose(home, expected, rtol=1e-6)


def test_work_after_an_event_of_the_host_waits_for_it(gpu):
    from cpu.device import Device

    host, queue = Device().queue("host", 1), gpu.device.queue("dense", 1)
    locked, there = gpu.device.host_empty(1000, np.float32), gpu.empty(1000, np.float32)
    expected = numbers()

    def slowly():
        time.sleep(0.05)
        locked[:] = expected

    queue.run(device.copy, there, locked, after=[host.run(slowly)]).wait()
    np.testing.assert_array_equal(gpu.get(there), expected)
    host.close()


def test_an_event_can_be_waited_for_in_any_thread(gpu):
    queue, home = gpu.device.queue("out", 1), gpu.device.host_empty(1000, np.float32)
    expected = numbers()
    event = queue.run(device.copy, home, gpu.put(expected))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(event.wait).result()
    np.testing.assert_array_equal(home, expected)


def test_the_result_and_the_time_of_the_work_are_known(gpu):
    notes, before = [], time.perf_counter()
    event = gpu.queue.run(lambda: 7, note=lambda start, end: notes.append((start, end)))
    assert event.wait() == 7 and event.wait() == 7
    ((start, end),) = notes
    assert start <= end
    if not gpu.simulated:  # whose time goes on only while it works
        assert before - 0.1 < start and end < time.perf_counter() + 0.1


def test_a_queue_that_failed_takes_no_more_work(gpu):
    queue, done = gpu.device.queue("dense", 1), []
    queue.run(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        queue.run(done.append, 1).wait()
    assert done == []
    assert gpu.device.queue("dense", 1).run(lambda: 3).wait() == 3  # another one does


def test_kernels_are_launched_by_the_work_of_a_queue_only():
    with pytest.raises(RuntimeError, match="launched by the work of a queue"):
        device.current()


def test_memory_is_given_back_whoever_forgets_it(gpu):
    gc.collect()
    before = gpu.device.memory()
    arrays = [gpu.empty(1 << 20, np.float32), gpu.device.host_empty(1 << 18, np.float32)]
    held = gpu.device.memory()
    assert held["device"] == before["device"] + (4 << 20) and held["page-locked"] == before["page-locked"] + (1 << 20)
    part = arrays[1][100:200]  # a view keeps the whole
    arrays.clear()
    gc.collect()
    assert gpu.device.memory()["page-locked"] == held["page-locked"]
    box = [part]
    del part
    with ThreadPoolExecutor(1) as pool:
        pool.submit(box.clear).result()
    gc.collect()
    assert gpu.device.memory()["device"] == before["device"]
    assert gpu.device.memory()["page-locked"] == before["page-locked"]


def test_what_leaves_behind_a_mark_is_freed_by_a_later_call(gpu):
    """Called here as finalizers do, which tell nobody of an error."""
    things = [Held([bytearray(1)]) for _ in range(3)]
    for thing in things:
        gpu.device.owner.call(gpu.device.free, thing)
        gpu.device.owner.call(gpu.device.context.synchronize)
    assert [len(thing) for thing in things[:-1]] == [0, 0]


def test_a_queue_in_a_cycle_is_freed_by_the_owner(gpu):
    """The garbage collector tells the guard first, and clears the queue last: its stream must not be the last to know."""

    class Late:
        def __del__(self):  # runs between the two
            gpu.device.owner.call(int)

    cycle = [gpu.device.queue("cycle", 1), Late()]
    cycle.append(cycle)
    del cycle
    gc.collect()  # PyCUDA warns of a stream that another thread frees; warnings are errors


def test_scratch_grows_and_is_kept(gpu):
    def small_then_large_then_small():
        return [device.scratch("test", size, np.int32) for size in (10, 1000, 10)]

    first, second, third = gpu.run(small_then_large_then_small)
    assert first.pointer != second.pointer == third.pointer and third.shape == (10,)


def test_streams_are_ordered_with_those_of_another_library(gpu):
    """Two queues that know nothing of each other, one playing the other library: its handle is a plain CUstream."""
    mine, other = gpu.device.queue("mine", 1), gpu.device.queue("other", 1)
    locked, home = (gpu.device.host_empty(1000, np.float32) for _ in range(2))
    there = gpu.empty(1000, np.float32)
    locked[:] = numbers()
    other.run(device.copy, there, locked)
    mine.within(other.handle, device.copy, home, there)
    other.run(fill_bytes, there, 0).wait()
    np.testing.assert_array_equal(home, locked)


def test_pytorch_shares_the_device(gpu):
    if gpu.simulated:
        pytest.skip("PyTorch does not see the simulated driver")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a device that PyTorch sees too")
    theirs = torch.arange(1000, dtype=torch.float32, device="cuda")
    gradient = torch.ones_like(theirs)
    queue = gpu.device.queue("dense", 1)
    given = gpu.device.adopt(theirs), None, gpu.device.adopt(gradient), 2.0, 0.0
    queue.within(torch.cuda.current_stream().cuda_stream, units.update, *given)
    assert torch.equal(theirs.cpu(), torch.arange(1000) - 2.0) and not gradient.any()
    mine = gpu.put(numbers())
    np.testing.assert_array_equal(torch.as_tensor(mine, device="cuda").cpu().numpy(), gpu.get(mine))


def test_too_large_an_array_says_what_was_asked_for_and_what_is_free(gpu):
    said = r"no room for an array \(1099511627776,\) of float32, 4,398,046\.5 MB; [\d,.]+ of [\d,.]+ MB are free"
    with pytest.raises(MemoryError, match=f"cuda:0: {said}"):
        gpu.empty(1 << 40, np.float32)
    assert gpu.get(gpu.put(numbers(3))).size == 3  # the device is as good as before


def test_a_device_that_is_not_there_is_named(gpu):
    with pytest.raises(device.DeviceError, match=r"cuda:77: there are \d+ devices, numbered from 0"):
        device.Device(77)


@pytest.mark.parametrize(("fault", "work"), [("launch:1", "update"), ("copy:1", "copy")])
def test_a_driver_that_fails_is_an_error_with_the_remedy(gpu, simulated, fault, work):
    weights, gradient = gpu.put(numbers()), gpu.put(numbers())
    queue = gpu.device.queue("dense", 1)
    queue.run(units.update, weights, None, gradient, 0.1, 0.0).wait()  # compiled
    cudasim.fail(fault)
    try:
        with pytest.raises(device.DeviceError, match=r"cuda:0: .*the last checkpoint is intact; `hybrid doctor`"):
            if work == "update":
                queue.run(units.update, weights, None, gradient, 0.1, 0.0).wait()
            else:
                queue.run(device.copy, gradient, weights).wait()
    finally:
        cudasim.fail()
        cudasim.heal()
        cudasim.clear()


def test_waiting_leaves_the_core_to_others(gpu, monkeypatch):
    """Who waits for a queue sleeps, as other threads have work; an inline queue's wait may spin. Events are used again."""
    import pycuda.driver as driver

    made, event = [], driver.Event
    monkeypatch.setattr(driver, "Event", lambda flags: made.append(int(flags)) or event(flags))
    own = device.Device(0)
    made.clear()
    for queue, flags in ((own.queue("queue", 1), driver.event_flags.BLOCKING_SYNC), (own.inline("inline", 1), 0)):
        for _ in range(10):
            queue.run(int, note=lambda start, end: None).wait()
        assert set(made) == {int(flags)} and len(made) < 10
        made.clear()
    own.close()


def test_a_device_that_is_closed_leaves_nothing_though_arrays_are_kept(gpu, simulated):
    gc.collect()  # arrays of other tests
    gpu.device.owner.call(gpu.device.context.synchronize)
    before = cudasim.live()
    own = device.Device(0)
    kept = own.empty(1000, np.float32), own.host_empty(1000, np.float32)
    assert cudasim.live().device_bytes > before.device_bytes
    own.close()
    gpu.device.owner.call(gpu.device.context.synchronize)  # memory is freed in the order of its stream
    assert cudasim.live() == before and len(kept) == 2 and not own.owner._thread.is_alive()
