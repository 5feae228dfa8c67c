"""Bulk copies and their barriers: the right kernel of bulk.cu runs, each fault planted in it is found."""

from pathlib import Path

import numpy as np

from tests import cudasim
from tests.cudasim import isolated, traffic
from tests.cudasim.isolated import Gpu

KERNELS = Path(__file__).with_name("bulk.cu")
X = np.arange(132)
RIGHT = 2 * X[127::-1]
(
    NONE,
    NO_BARRIER,
    NO_WAIT,
    MISCOUNTED,
    MISALIGNED,
    ODD_SIZE,
    ARRIVES_TWICE,
    FEW_MEET,
    NO_FENCE,
    OVERWRITTEN,
    NO_WAIT_READ,
    PART_WANTED,
) = range(12)
SAID = {
    NO_BARRIER: ("mbarrier", "a barrier that has not been initialised"),
    MISCOUNTED: ("barrier", "waits for ever at "),
    MISALIGNED: ("misaligned", "not multiples of 16 bytes"),
    ODD_SIZE: ("misaligned", "not multiples of 16 bytes"),
    ARRIVES_TWICE: ("mbarrier", "more threads arrive"),
    FEW_MEET: ("barrier", "at barrier 1 are 128 threads"),
    NO_WAIT_READ: ("bulk", "a bulk store that its thread has not"),
}


def reversed_by(gpu, fault):
    """What one block makes of X."""
    x, y = gpu.to_device(X), gpu.driver.mem_alloc(512)
    gpu.run("reverse", "PPi", y, x, fault, block=(128, 1, 1))
    return gpu.to_host(y, 128)


@isolated.isolated()
def test_copies_come_when_they_are_waited_for():
    gpu = Gpu(source=KERNELS)
    wrong = 0
    for seed in range(8):
        cudasim.seed(seed)
        np.testing.assert_array_equal(reversed_by(gpu, NONE), RIGHT)
        wrong += not np.array_equal(reversed_by(gpu, NO_WAIT), RIGHT)
    assert wrong > 4
    assert reversed_by(gpu, OVERWRITTEN)[0] == -1
    assert cudasim.problems() == []


@isolated.isolated()
def test_what_a_load_takes_beside_what_is_wanted_is_nothing_to_look_at():
    found = reversed_by(Gpu(source=KERNELS), PART_WANTED)
    assert np.isnan(found).nonzero()[0].tolist() == [0, 126, 127]
    np.testing.assert_array_equal(found[1:126], RIGHT[1:126])


@isolated.isolated()
def test_what_would_hang_or_fault_on_a_device_is_a_problem():
    gpu = Gpu(source=KERNELS)
    for fault, (kind, text) in SAID.items():
        with gpu.broken(kind, text):
            reversed_by(gpu, fault)
        cudasim.clear()
        cudasim.heal()
    with gpu.broken("barrier", "lacks 0 of 1 arrivals and 16 bytes"):
        reversed_by(gpu, MISCOUNTED)


@isolated.isolated(count=1)
def test_a_store_of_what_is_not_fenced_is_seen_where_kernels_are_counted():
    gpu = Gpu(source=KERNELS)
    np.testing.assert_array_equal(reversed_by(gpu, NONE), RIGHT)
    assert cudasim.problems() == []
    (found,) = traffic.launches()
    assert found.read == found.written == traffic.Moved(requests=1, bytes=512, sectors=16, first=512)
    with gpu.broken("proxy", "without a fence.proxy.async"):
        reversed_by(gpu, NO_FENCE)
