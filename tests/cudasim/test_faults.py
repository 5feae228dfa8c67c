"""Failures on demand, several devices, other devices, other drivers."""

import numpy as np
import pytest

from tests import cudasim
from tests.cudasim.isolated import Gpu, isolated


def fails(action) -> str:
    """The error that the action raises, or ""."""
    import pycuda.driver as driver

    try:
        action()
    except (driver.Error, MemoryError) as error:
        return str(error)
    return ""


@isolated()
def test_nth_call_fails(gpu: Gpu):
    """The second one counted from here, and no other."""
    x = gpu.to_device(np.ones(8))
    actions = {
        "alloc": lambda: gpu.driver.mem_alloc(8),
        "host_alloc": lambda: gpu.driver.pagelocked_empty(8, np.float32),
        "copy": lambda: gpu.to_host(x, 8),
        "launch": lambda: gpu.kernel("write_at", "Pq").prepared_call((1, 1), (1, 1, 1), x, 0),
        "module": lambda: Gpu.__init__(gpu),
    }
    for kind, action in actions.items():
        cudasim.fail(f"{kind}:2")
        outcomes = [bool(fails(action)) for _ in range(3)]
        assert outcomes == [False, True, False], kind
    cudasim.fail("alloc:1,copy:1")
    assert "out of memory" in fails(actions["alloc"]) and fails(actions["copy"])
    cudasim.fail()
    assert not any(map(fails, actions.values()))
    cudasim.fail()  # calls are counted from there
    y = gpu.to_device(np.ones(8))
    gpu.run("write_at", "Pq", y, 0, block=(1, 1, 1))
    counted = cudasim.counts()
    assert [counted[kind] for kind in ("alloc", "copy", "launch", "sync", "free")] == [1, 1, 1, 1, 0]


@isolated()
def test_what_breaks_a_context(gpu: Gpu):
    """What a wait reports is a failure of earlier work; of a lost device everything fails from one call on."""
    cudasim.fail("sync:1")
    assert "unspecified launch failure" in fails(gpu.driver.Context.synchronize)
    cudasim.fail()
    assert fails(lambda: gpu.driver.mem_alloc(8))
    cudasim.heal()
    gpu.driver.mem_alloc(8)
    cudasim.fail("lost:2")
    assert not fails(gpu.driver.Context.synchronize)
    assert all(fails(lambda: gpu.driver.mem_alloc(8)) for _ in range(3)) and fails(gpu.driver.Context.synchronize)


@isolated(driver=12.2)
def test_old_driver():
    """A module of a newer compiler is refused."""
    import pycuda.driver as driver

    driver.init()
    assert driver.get_driver_version() == 12020
    assert "unsupported toolchain" in fails(Gpu)


@isolated(device="a100")
def test_other_device():
    """Its figures, and a module made for another."""
    import pycuda.driver as driver

    driver.init()
    device = driver.Device(0)
    assert device.compute_capability() == (8, 0) and "A100" in device.name()
    assert device.get_attribute(driver.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 163 * 1024
    assert "no kernel image" in fails(Gpu)


@isolated(devices=2)
def test_two_devices():
    """Each has its memory, and its kernels; a copy may cross, a kernel may not."""
    first = Gpu(0)
    x, function = first.to_device(np.ones(8)), first.kernel("write_at", "Pq")
    second = Gpu(1)
    y = second.driver.mem_alloc(32)
    second.driver.memcpy_dtod(y, x, 32)
    assert (second.to_host(y, 8) == 1).all() and first.driver.Device.count() == 2
    second.run("write_at", "Pq", y, 0, block=(1, 1, 1))
    with second.broken("context", "device allocation #1 of 32 bytes on device 0"):
        second.run("write_at", "Pq", x, 0, block=(1, 1, 1))
    with second.broken("context", "kernel write_at"):
        function.prepared_call((1, 1), (1, 1, 1), y, 0)


def test_unknown_failure_is_refused():
    """A misspelt one would never happen."""
    with pytest.raises(ValueError, match="kind 'aloc:7'"):
        cudasim.fail("aloc:7")
