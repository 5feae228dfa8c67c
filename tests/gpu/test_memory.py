"""Memory of the pool and copies of pageable memory, on whatever device the tests have, and without pools."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

from gpu import memory
from gpu.device import Device
from gpu.errors import Translated
from gpu.queues import check
from tests import cudasim

PART = 1 << 10


def raising(*arguments):
    raise AssertionError("the context was synchronised")


@pytest.fixture
def own(gpu, monkeypatch):
    """A device of the test's own, whose copies go through small buffers."""
    for name in ("gpu.memory.PART", "gpu.device.PART"):
        monkeypatch.setattr(name, PART)
    made = Device(0)
    yield made
    made.close()


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, 7 * PART + 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_copy_goes_there_and_back_in_parts(gpu, own, size, seed):
    if gpu.simulated:
        cudasim.seed(seed)
    given = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    there = own.from_host(given)
    given_again = given[::-1].copy()
    np.testing.assert_array_equal(own.to_host(there), given)
    own.write(there, given_again)
    np.testing.assert_array_equal(own.to_host(there), given_again)


def test_a_copy_to_the_device_is_there_when_it_returns(own):
    own.write(own.empty(3 * PART, np.uint8), np.ones(3 * PART, np.uint8))
    assert own.owner.call(lambda: [free.query() for _, free in own._staging._parts]) == [True, True]


def test_a_copy_waits_for_the_work_of_every_queue(gpu, own):
    """It is asked for while work on three queues is under way."""
    for seed in range(6):
        if gpu.simulated:
            cudasim.seed(seed)
        locked = own.host_empty(5 * PART, np.uint8)
        locked[:] = seed
        parts = [own.empty(5 * PART, np.uint8) for _ in range(3)]
        queues = [own.queue(f"queue {n}", 1) for n in range(3)]
        for queue, part in zip(queues, parts, strict=True):
            queue.copy(part, locked)
        assert all((own.to_host(part) == seed).all() for part in parts)
        own.write(parts[0], np.full(5 * PART, 77, np.uint8))
        home = own.host_empty(5 * PART, np.uint8)
        queues[0].copy(home, parts[0]).wait()
        assert (home == 77).all()


def test_nothing_waits_for_the_whole_context(gpu, own):
    """Arrays are made, copied and freed while work that uses them is under way."""
    real, own.context = own.context, SimpleNamespace(synchronize=raising, handle=own.context.handle)
    queue = own.queue("queue", 1)
    for seed in range(6):
        if gpu.simulated:
            cudasim.seed(seed)
        locked, home = own.host_empty(PART, np.uint8), own.host_empty(PART, np.uint8)
        locked[:] = seed
        there = own.from_host(np.zeros(PART, np.uint8))
        queue.copy(there, locked)
        done = queue.copy(home, there)
        del there, locked  # both copies may be under way
        gc.collect()
        own.owner.call(int)
        other = own.empty(PART, np.uint8)  # perhaps where the first array was
        done.wait()
        assert (home == seed).all()
        del other
    own.context = real


def test_what_is_freed_is_gone_when_the_work_is_past(gpu, own):
    if not gpu.simulated:
        pytest.skip("only the simulated driver counts what is allocated")
    before = cudasim.live()
    arrays = [own.empty(1000, np.float32), own.host_empty(1000, np.float32)]
    assert cudasim.live() != before
    own.queue("queue", 1).copy(*arrays).wait()
    arrays.clear()
    gc.collect()
    for _ in range(2):  # page-locked memory goes at a later call
        own.to_host(own.empty(1, np.uint8))
        gc.collect()
        own.owner.call(int)
    own.owner.call(own.context.synchronize)
    assert cudasim.live().host_bytes == before.host_bytes
    assert cudasim.live().device_bytes == before.device_bytes


def test_an_array_that_another_library_has_seen_waits_for_that_library(gpu, own):
    """Its work may be on a stream that our queues are not ordered with."""
    waited, real = [], own.context
    own.context = SimpleNamespace(synchronize=lambda: waited.append(1) or real.synchronize(), handle=real.handle)
    mine, lent = own.empty(10, np.uint8), own.empty(10, np.uint8)
    part = own.adopt(lent[2:5])
    assert part.pointer == lent.pointer + 2
    del mine
    gc.collect()
    own.owner.call(int)
    assert waited == []
    del lent, part
    gc.collect()
    own.owner.call(int)
    assert waited == [1]
    own.context = real


def test_a_device_without_pools_frees_once_all_work_is_done(gpu, own):
    own._pools = 0
    waited, real = [], own.context
    own.context = SimpleNamespace(synchronize=lambda: waited.append(1) or real.synchronize(), handle=real.handle)
    array = own.from_host(np.arange(5))
    assert not isinstance(array.keep.held[0], memory.Block)
    np.testing.assert_array_equal(own.to_host(array), np.arange(5))
    del array
    gc.collect()
    own.owner.call(int)
    assert waited == [1]
    own.context = real


def test_errors_of_the_pool_are_in_our_words(own):
    def full():
        with Translated("cuda:0", "much"):
            check("cuMemAllocAsync", 2)

    def broken():
        with Translated("cuda:0"):
            check("cuMemAllocAsync", 700)

    with pytest.raises(MemoryError, match=r"cuda:0: no room for much; .* MB are free"):
        own.owner.call(full)
    with pytest.raises(OSError, match="cuda:0: cuMemAllocAsync failed: "):
        own.owner.call(broken)


def test_an_array_that_does_not_fit_leaves_what_is_there(gpu, own):
    kept = own.from_host(np.arange(5))
    with pytest.raises(MemoryError, match="no room for an array"):
        own.empty(1 << 50, np.uint8)
    np.testing.assert_array_equal(own.to_host(kept), np.arange(5))
