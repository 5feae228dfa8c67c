"""Memory used wrongly is named: the culprit, the allocation, the offset."""

import signal

import numpy as np
import pytest

from tests import cudasim
from tests.cudasim.isolated import Gpu, driver_call, isolated, pointer

INVALID_VALUE = 1


@isolated()
def test_fresh_memory_is_nan(gpu: Gpu):
    """Nothing relies on memory being zero: not of the device, not page-locked."""
    assert np.isnan(gpu.to_host(gpu.driver.mem_alloc(400), 100)).all()
    assert np.isnan(gpu.driver.pagelocked_empty(100, np.float32)).all()
    x, y = gpu.to_device(np.ones(10)), gpu.driver.mem_alloc(4)
    for at in (10, -1):  # of the 15 bytes at most that can be read where an odd size ends, or begins
        gpu.run("read_at", "PPq", y, x, at, block=(1, 1, 1))
        assert np.isnan(gpu.to_host(y, 1)[0])


# Under an odd seed memory begins where pages begin that can be touched, under an even one it ends where they end
OUTSIDE = [  # a seed, numbers there are, what is done where, what is said
    (0, 100, "write_at", 100, "kernel write_at: an access to offset 400 in device allocation #1 of 400 bytes"),
    (0, 101, "write_at", 101, "kernel write_at wrote at offset 404 in "),  # the end of an odd size can be touched
    (0, 100, "write_at", -1, "offset -4 in "),
    (0, 12, "read_at", 12, "kernel read_at: an access to offset 48 in "),  # though what it reads is used for nothing
    (1, 10, "read_at", -1, "kernel read_at: an access to offset -4 in "),
    (1, 100, "write_at", 100, "kernel write_at wrote at offset 400 in "),
    (1, 100, "write_at", -1, "kernel write_at: an access to offset -4 in "),
]


@isolated()
def test_accesses_outside_an_array(gpu: Gpu):
    """One number too far or too early, which a device would not notice; the last and the first are fine."""
    for seed, size, kernel, at, said in OUTSIDE:
        cudasim.seed(seed)
        array = gpu.to_device(np.ones(size))
        assert int(array) % (256 if seed else 16) == 0
        into = [gpu.driver.mem_alloc(4)] if kernel == "read_at" else []
        for fine in (0, size - 1):
            gpu.run(kernel, "P" * len(into) + "Pq", *into, array, fine, block=(1, 1, 1))
        with gpu.broken("out_of_bounds", said):
            gpu.run(kernel, "P" * len(into) + "Pq", *into, array, at, block=(1, 1, 1))
    with gpu.broken("out_of_bounds", "copy to the host of 404 bytes"):  # refused when it is asked for
        gpu.to_host(array, 101)
    with gpu.broken("illegal_address", "kernel write_at: an access to offset 40000", heal=False):
        gpu.run("write_at", "Pq", array, 10000, block=(1, 1, 1))
    with gpu.broken("illegal_address"):  # the context stays broken
        gpu.driver.mem_alloc(400)


@isolated()
def test_use_after_free(gpu: Gpu):
    """Freed before the kernel that was given it has run, or before the copy: of the device's memory or of page-locked."""

    def by_a_kernel():
        memory = gpu.driver.mem_alloc(400)
        gpu.kernel("write_at", "Pq").prepared_async_call((1, 1), (1, 1, 1), None, memory, 0)
        memory.free()

    def by_a_copy():
        memory, out = gpu.to_device(np.ones(100)), gpu.locked(np.zeros(100))
        gpu.driver.memcpy_dtoh_async(out, memory, gpu.driver.Stream())
        memory.free()
        kept.append(out)

    def of_the_host():
        memory, out = gpu.driver.mem_alloc(400), gpu.locked(np.zeros(100))
        gpu.driver.memcpy_htod_async(memory, out, gpu.driver.Stream())
        kept.append(memory)

    kept = []
    for work, said in (
        (by_a_kernel, "argument 0 of write_at: offset 0 in freed device allocation #1"),
        (by_a_copy, "copy to the host of 400 bytes"),
        (of_the_host, "page-locked allocation #"),
    ):
        work()
        with gpu.broken("use_after_free", said):
            gpu.driver.Context.synchronize()


@isolated()
def test_pointers_in_device_memory(gpu: Gpu):
    """A kernel may follow them, and not into what has been freed."""
    x, y, table = gpu.to_device(np.full(4, 5)), gpu.driver.mem_alloc(4), gpu.driver.mem_alloc(8)
    gpu.driver.memcpy_htod(table, np.array([int(x)], np.uint64))
    gpu.run("follow", "PP", y, table, block=(1, 1, 1))
    assert gpu.to_host(y, 1)[0] == 5
    x.free()
    with gpu.broken("use_after_free", "kernel follow: an access to offset 0 in freed device allocation #1"):
        gpu.run("follow", "PP", y, table, block=(1, 1, 1))


@isolated(says="leak: offset 0 in device allocation #2 of 800 bytes")
def test_leak(gpu: Gpu):
    """What is allocated when the context goes is a leak."""
    kept = [gpu.driver.mem_alloc(400), gpu.driver.mem_alloc(800)]
    assert cudasim.live() == (2, 1200, 0, 0)
    kept.pop(0).free()
    assert cudasim.live() == (1, 800, 0, 0)
    gpu.close()
    assert len(cudasim.problems()) == 1


@isolated()
def test_double_free(gpu: Gpu):
    """And a free of what was never allocated."""
    memory = gpu.driver.mem_alloc(400)
    address = int(memory)
    memory.free()
    assert driver_call("cuMemFree_v2", pointer(address)) == INVALID_VALUE
    assert driver_call("cuMemFree_v2", pointer(address + 8)) == INVALID_VALUE
    assert [line.split(":")[0] for line in cudasim.problems()] == ["double_free", "bad_free"]


@isolated(code=-signal.SIGSEGV, says="host_access: the host touched offset 8 in device allocation #1")
def test_host_cannot_read_device_memory(gpu: Gpu):
    """A device pointer is no host pointer."""
    memory = gpu.driver.mem_alloc(400)
    memory.as_buffer(400)[8]


@isolated(memory=1 << 20)
def test_device_memory_is_finite(gpu: Gpu):
    """As much as CUDASIM_MEMORY says, and the driver's figures agree."""
    kept = gpu.driver.mem_alloc(1 << 19)
    free, total = gpu.driver.mem_get_info()
    assert (free, total) == (1 << 19, 1 << 20)
    with pytest.raises(gpu.driver.MemoryError):
        gpu.driver.mem_alloc(free + 1)
    kept.free()
    assert gpu.driver.mem_get_info()[0] == total
