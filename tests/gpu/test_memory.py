"""Memory of the pool and copies of pageable memory, on whatever device the tests have, and without pools."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

from gpu.device import Device, copy
from gpu.runtime import memory
from tests import cudasim
from tests.cudasim.isolated import isolated
from tests.support.fill_bytes import fill_bytes

PART = 1 << 10


@pytest.fixture
def own(gpu, monkeypatch):
    """A device of the test's own, whose copies go through small buffers."""
    for name in ("gpu.runtime.memory.PART", "gpu.device.PART"):
        monkeypatch.setattr(name, PART)
    made = Device(0)
    yield made
    made.close()


@pytest.fixture
def waits(own):
    """How often the whole context of the device is waited for."""
    waited, real = [], own.context
    own.context = SimpleNamespace(synchronize=lambda: waited.append(1) or real.synchronize(), handle=real.handle)
    yield waited
    own.context = real


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 7 * PART + 3])
def test_a_copy_goes_there_and_back_in_parts(gpu, own, size, seed=1):
    gpu.order(seed)
    given = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    there = own.from_host(given)
    given_again = given[::-1].copy()
    np.testing.assert_array_equal(own.to_host(there), given)
    own.write(there, given_again)
    np.testing.assert_array_equal(own.to_host(there), given_again)


def test_a_copy_waits_for_the_work_of_every_queue(gpu, own):
    """It is asked for while work on three queues is under way."""
    for seed in gpu.orders(6):
        locked = own.host_empty(5 * PART, np.uint8)
        locked[:] = seed
        parts = [own.empty(5 * PART, np.uint8) for _ in range(3)]
        queues = [own.queue(f"queue {n}", 1) for n in range(3)]
        for queue, part in zip(queues, parts, strict=True):
            queue.run(copy, part, locked)
        assert all((own.to_host(part) == seed).all() for part in parts)
        own.write(parts[0], np.full(5 * PART, 77, np.uint8))
        home = own.host_empty(5 * PART, np.uint8)
        queues[0].run(copy, home, parts[0]).wait()
        assert (home == 77).all()


def test_nothing_waits_for_the_whole_context(gpu, own, waits):
    """Arrays are made, copied and freed while work that uses them is under way."""
    queue = own.queue("queue", 1)
    for seed in gpu.orders(6):
        locked, home = own.host_empty(PART, np.uint8), own.host_empty(PART, np.uint8)
        locked[:] = seed
        there = own.from_host(np.zeros(PART, np.uint8))
        queue.run(copy, there, locked)
        done = queue.run(copy, home, there)
        del there, locked  # both copies may be under way
        gc.collect()
        own.owner.call(int)
        other = own.empty(PART, np.uint8)  # perhaps where the first array was
        done.wait()
        assert (home == seed).all() and waits == []
        del other


def test_what_is_freed_is_gone_when_the_work_is_past(simulated, own):
    before = cudasim.live()
    arrays = [own.empty(1000, np.float32), own.host_empty(1000, np.float32)]
    assert cudasim.live() != before
    own.queue("queue", 1).run(copy, *arrays).wait()
    arrays.clear()
    gc.collect()
    for _ in range(2):  # page-locked memory goes at a later call
        own.to_host(own.empty(1, np.uint8))
        gc.collect()
        own.owner.call(int)
    own.owner.call(own.context.synchronize)
    assert cudasim.live().host_bytes == before.host_bytes
    assert cudasim.live().device_bytes == before.device_bytes


def test_an_array_that_another_library_has_seen_waits_for_that_library(own, waits):
    """Its work may be on a stream that our queues are not ordered with."""
    mine, lent = own.empty(10, np.uint8), own.empty(10, np.uint8)
    part = own.adopt(lent[2:5])
    assert part.pointer == lent.pointer + 2
    del mine
    gc.collect()
    own.owner.call(int)
    assert waits == []
    del lent, part
    gc.collect()
    own.owner.call(int)
    assert waits == [1]


def test_a_device_without_pools_frees_once_all_work_is_done(own, waits, monkeypatch):
    monkeypatch.setattr(own, "_pool", None)
    array = own.from_host(np.arange(5))
    assert not isinstance(array.keep.held[0], memory.Block)
    np.testing.assert_array_equal(own.to_host(array), np.arange(5))
    del array
    gc.collect()
    own.owner.call(int)
    assert waits == [1]


def forget(own, box):
    """Let go of what the list holds, and let the owner free it."""
    box.clear()
    own.owner.call(int)


@pytest.mark.parametrize("page_locked", [False, True])
def test_a_free_lets_no_queue_wait_for_another(gpu, simulated, own, page_locked):
    first, second, overtaken = own.queue("first", 1), own.queue("second", 1), 0
    for _ in gpu.orders(60):
        there, other = own.from_host(np.zeros(PART, np.uint8)), own.empty(PART, np.uint8)
        home = own.host_empty(PART, np.uint8)
        unused = [(own.host_empty if page_locked else own.empty)(PART, np.uint8)]
        own.owner.call(own.context.synchronize)
        late = first.run(copy, home, there)
        forget(own, unused)
        second.run(fill_bytes, other, 1).wait()
        overtaken += bool(home.any())  # until it is written it is not zero
        late.wait()
        if overtaken:
            break
    assert overtaken


def test_what_is_freed_is_there_for_the_work_of_every_queue_even_of_those_that_are_gone(gpu, own):
    for seed in gpu.orders(12):
        homes = [own.host_empty(PART, np.uint8) for _ in range(3)]
        there = [own.from_host(np.full(PART, seed, np.uint8))]
        queues = [own.queue(f"queue {n}", 1) for n in range(3)]
        for queue, home in zip(queues, homes, strict=True):
            queue.run(copy, home, there[0])
            forget(own, [own.empty(1, np.uint8)])  # behind some of the queues
        del queue
        forget(own, queues)
        forget(own, there)
        own.owner.call(own.context.synchronize)
        assert all((home == seed).all() for home in homes)


@pytest.mark.parametrize("theirs", [False, True])
def test_an_array_is_there_at_once_though_what_was_there_is_in_use(gpu, own, theirs):
    """For every queue, and for the legacy default stream, where another library computes."""
    import pycuda.driver as driver

    busy, other = own.queue("busy", 1), own.queue("other", 1)
    for seed in gpu.orders(12):
        home, again = own.host_empty(PART, np.uint8), own.host_empty(PART, np.uint8)
        there = [own.from_host(np.full(PART, seed, np.uint8))]
        busy.run(copy, home, there[0])
        forget(own, there)
        new = own.empty(PART, np.uint8)  # perhaps there
        if theirs:
            own.owner.call(driver.memset_d8_async, new.pointer, 7, PART, None)
        else:
            other.run(fill_bytes, new, 7)
        other.run(copy, again, new)
        own.owner.call(own.context.synchronize)
        assert (home == seed).all() and (again == 7).all()


def test_memory_that_is_free_is_kept_counts_as_free_and_goes_with_the_device(gpu):
    import pycuda.driver as driver

    def free():
        return gpu.device.owner.call(driver.mem_get_info)[0]

    def reserved():
        return own.owner.call(own._pool._attribute, memory.RESERVED)

    gpu.device.owner.call(gpu.device.context.synchronize)
    before, size = free(), 8 << 20
    own = Device(0)
    room, held = own.memory()["free"], len(own.held)
    array = [own.empty(size, np.uint8)]
    assert not gpu.simulated or room - own.memory()["free"] == size
    forget(own, array)
    for _ in range(2):
        own.owner.call(own.context.synchronize)
        assert reserved() >= size
    assert not gpu.simulated or (own.memory()["free"], free()) == (room, before - size)
    assert len(own.held) == held
    own.close()
    assert not gpu.simulated or free() == before


@isolated(memory=8 << 20)
def test_where_there_is_no_room_what_is_kept_is_given_back_first():
    """Pieces of 1 MiB are in the way of an array of 6 MiB; then of another library's 6 MiB, until the device is closed."""
    import pycuda.driver as driver

    own, other = Device(0), Device(0)
    for _ in range(2):
        forget(own, [own.empty(1 << 20, np.uint8) for _ in range(7)])
        forget(own, [own.empty(6 << 20, np.uint8)])
    with pytest.raises(MemoryError, match=r"no room for an array .* 8\.4 of 8\.4 MB are free"):
        own.empty(9 << 20, np.uint8)
    forget(own, [own.empty(1 << 20, np.uint8) for _ in range(7)])
    own.close()
    assert other.owner.call(driver.mem_get_info)[0] == 8 << 20
    other.close()


def test_a_free_that_comes_after_its_device_s_end_finds_nothing_to_do(gpu):
    """The thread of the owner may be the last to let go of an array, once `close` has been called."""
    own = Device(0)
    array = own.empty(10, np.uint8)
    held, freed = array.keep.held, []
    post = own.owner.post
    own.owner.post = lambda *work: freed.append(work)  # and it comes late
    del array
    gc.collect()
    own.close()
    own.owner.post = post
    assert freed[0] == (own.free, held) and not held
    own.free(held)
