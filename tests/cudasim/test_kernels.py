"""Kernels that are wrong are caught, right ones run."""

import numpy as np
import pytest

from tests import cudasim
from tests.cudasim.isolated import Gpu, isolated


@isolated()
def test_barrier(gpu: Gpu):
    """Threads that read what others write need one."""
    x = np.arange(256)
    dx, dy, wrong = gpu.to_device(x), gpu.driver.mem_alloc(1024), 0
    for number in range(24):
        cudasim.seed(number)
        gpu.run("reverse_right", "PP", dy, dx, block=(256, 1, 1))
        np.testing.assert_array_equal(gpu.to_host(dy, 256), x[::-1])
        gpu.run("reverse_without_barrier", "PP", dy, dx, block=(256, 1, 1))
        wrong += not np.array_equal(gpu.to_host(dy, 256), x[::-1])
    assert wrong == 24
    y = gpu.to_device(np.zeros(64))
    gpu.run("early_exit", "Pi", y, 40, block=(64, 1, 1))  # threads that left are not waited for, as since Volta
    assert gpu.to_host(y, 64).sum() == 40


@isolated()
def test_shared_memory_is_nan(gpu: Gpu):
    """In every block anew."""
    y = gpu.driver.mem_alloc(128)
    gpu.run("half_initialised", "P", y)
    assert np.isnan(gpu.to_host(y, 32)).tolist() == [False] * 16 + [True] * 16


@isolated()
def test_pipeline(gpu: Gpu):
    """An asynchronous copy into shared memory is there after the wait."""
    x = np.arange(128)
    dx, dy = gpu.to_device(x), gpu.driver.mem_alloc(512)
    gpu.run("pipeline_right", "PP", dy, dx)
    np.testing.assert_array_equal(gpu.to_host(dy, 128), x[::-1])
    gpu.run("pipeline_without_wait", "PP", dy, dx)
    assert np.isnan(gpu.to_host(dy, 128)).all()


@isolated()
def test_asynchronous_copies_that_a_device_refuses(gpu: Gpu):
    """Four, 8 or 16 bytes at a time, both addresses a multiple of that."""
    dx, dy = gpu.to_device(np.arange(16)), gpu.driver.mem_alloc(4)
    for at, count in ((3, 1), (2, 2), (8, 4)):
        gpu.run("pipeline_of", "PPii", dy, dx, at, count, block=(1, 1, 1))
        assert gpu.to_host(dy, 1)[0] == at
    for at, count, kind in ((2, 4, "misaligned"), (1, 2, "misaligned"), (0, 3, "arguments")):
        with gpu.broken(kind, "kernels.cu"):
            gpu.run("pipeline_of", "PPii", dy, dx, at, count, block=(1, 1, 1))


@isolated()
def test_shared_memory_limits(gpu: Gpu):
    """48 KB without opting in, the device's limit with, static and dynamic together."""
    y, function = gpu.driver.mem_alloc(4096), gpu.kernel("last_of_dynamic", "Pi")
    most = gpu.driver.Device(0).get_attribute(gpu.driver.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    assert most == 227 * 1024
    limit = gpu.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES

    def launches(function, bytes_: int, *arguments) -> bool:
        try:
            function.prepared_call((1, 1), (32, 1, 1), y, *arguments, shared_size=bytes_)
        except gpu.driver.LogicError:
            return False
        gpu.driver.Context.synchronize()
        return True

    assert launches(function, 48 * 1024, 12 * 1024) and not launches(function, 48 * 1024 + 4, 1)
    static = gpu.kernel("uses_static", "P")
    assert static.shared_size_bytes == 4096
    assert launches(static, 44 * 1024) and not launches(static, 44 * 1024 + 4)
    function.set_attribute(limit, most)
    assert launches(function, most, most // 4) and gpu.to_host(y, 1)[0] == most // 4 - 1
    assert not launches(function, most + 4, 1)
    assert gpu.module.get_function("reverse_right").shared_size_bytes == 1024
    assert gpu.module.get_function("has_no_shared_memory").shared_size_bytes == 0
    with gpu.broken("out_of_bounds", "beyond the 128 bytes of dynamic shared memory"):
        gpu.run("last_of_dynamic", "Pi", y, 1000, shared=128)
        gpu.driver.Context.synchronize()


@isolated()
def test_shapes(gpu: Gpu):
    """Too many threads, too many blocks, none at all."""
    y = gpu.driver.mem_alloc(4096)
    for name, grid, block in (
        ("uses_static", (1, 1), (1025, 1, 1)),
        ("uses_static", (1, 1), (32, 33, 1)),
        ("uses_static", (1, 1), (1, 1, 65)),
        ("uses_static", (1, 65536), (1, 1, 1)),
        ("uses_static", (0, 1), (1, 1, 1)),
        ("at_most_64", (1, 1), (65, 1, 1)),
    ):
        with pytest.raises(gpu.driver.Error):
            gpu.run(name, "P", y, grid=grid, block=block)
    gpu.run("at_most_64", "P", y, block=(64, 1, 1))
    assert gpu.kernel("at_most_64", "P").max_threads_per_block == 64


BREAKING = [  # a kernel, its arguments, of which None is an array and ... one that is not aligned, and what is said
    ("diverge", "P", (None,), "barrier", "divergent"),
    ("wait_for_nobody", "P", (None,), "warp", "mask 0xffffffff"),
    ("write_at", "Pi", (None, 0), "arguments", "write_at takes 16 bytes"),  # prepare() said int, it is long long
    ("as_float4", "PP", (None, ...), "misaligned", "kernels.cu:"),
    ("index_array", "Pi", (None, 1), "out_of_bounds", "kernels.cu:"),  # of a size that the compiler knows
    ("divide", "Pi", (None, 0), "arithmetic", "kernel divide"),  # no trap on a device, but never meant
    ("divide", "Pi", (0x1234, 1), "illegal_address", "argument 0 of divide"),
    ("recurse", "Pi", (None, 1 << 30), "illegal_address", "kernel recurse"),
]


@isolated()
def test_wrong_kernels_are_named_with_what_is_wrong(gpu: Gpu):
    with pytest.raises(gpu.driver.LogicError, match="named symbol not found"):
        gpu.module.get_function("mangled")  # is not extern "C"
    memory = gpu.to_device(np.full(65, np.nan))
    for name, arguments, given, kind, said in BREAKING:
        values = [memory if one is None else int(memory) + 4 if one is ... else one for one in given]
        with gpu.broken(kind, said):
            gpu.run(name, arguments, *values)


@isolated(timeout=1)
def test_endless_loop(gpu: Gpu):
    """Threads that wait for what never comes."""
    with gpu.broken("timeout", "kernel spin"):
        gpu.run("spin", "P", gpu.to_device(np.full(64, np.nan)))


@isolated()
def test_faults_under_another_handler(gpu: Gpu):
    """Python's faulthandler, which pytest switches on, may take the signals before and after us."""
    import faulthandler

    memory = gpu.to_device(np.zeros(64))
    faulthandler.enable()
    with gpu.broken("illegal_address"):  # in the gap after it; far behind that lies other memory
        gpu.run("write_at", "Pq", memory, 10000, block=(1, 1, 1))


def expected_rows() -> np.ndarray:
    """What each lane gets from the intrinsics, as the programming guide has it."""
    lane = np.arange(32)
    within = lane % 16
    other = np.where(lane < 16, lane ^ 1, lane ^ 2)
    lowest = np.array([(int(n) & -int(n)).bit_length() for n in lane])
    return np.array(
        [
            np.full(32, 5),
            lane // 8 * 8 + 5,
            np.where(within < 3, lane, lane - 3),
            lane ^ 9,
            lane ^ 1,
            np.full(32, 11),
            np.full(32, 1),
            np.full(32, 10),
            other,
            lowest,
            lane + np.minimum(3, lane) + np.maximum(2.5, lane),
        ]
    )


@isolated()
def test_intrinsics(gpu: Gpu):
    """On many seeds."""
    y, counts = gpu.driver.mem_alloc(11 * 32 * 4), gpu.driver.mem_alloc(4)
    for number in range(8):
        cudasim.seed(number)
        gpu.driver.memcpy_htod(counts, np.zeros(1, np.uint32))
        gpu.run("intrinsics", "PP", y, counts)
        np.testing.assert_array_equal(gpu.to_host(y, 11 * 32).reshape(11, 32), expected_rows())
        assert gpu.to_host(counts, 1, np.uint32)[0] == 32
