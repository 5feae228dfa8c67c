"""Blocks that run together: what they write is there for each other behind a meeting, and not before."""

from pathlib import Path

import numpy as np

from tests import cudasim
from tests.cudasim import isolated, traffic
from tests.cudasim.isolated import Gpu

KERNELS = Path(__file__).with_name("clusters.cu")
NONE, NO_MEETING, ONE_BLOCK_MISSES, SOME_WAIT_FOR_THEIR_BLOCK = range(4)
BLOCKS = 8
PASSED = np.roll(np.arange(64 * BLOCKS).reshape(2, 4, 64), -1, axis=1).ravel()


def passed_on(gpu, fault, x=None):
    """What each thread has from the next block of its cluster."""
    x = x or gpu.driver.mem_alloc(256 * BLOCKS)
    y = gpu.driver.mem_alloc(256 * BLOCKS)
    gpu.run("pass_on", "PPi", y, x, fault, grid=(BLOCKS, 1), block=(64, 1, 1), shared=256)
    return gpu.to_host(y, 64 * BLOCKS)


@isolated.isolated()
def test_what_a_block_writes_is_there_for_its_cluster_when_they_have_met():
    gpu = Gpu(source=KERNELS)
    wrong = {NO_MEETING: 0, ONE_BLOCK_MISSES: 0}
    for seed in range(8):
        cudasim.seed(seed)
        np.testing.assert_array_equal(passed_on(gpu, NONE), PASSED)
        for fault in wrong:
            wrong[fault] += not np.array_equal(passed_on(gpu, fault), PASSED)
    assert min(wrong.values()) >= 4
    assert cudasim.problems() == []


@isolated.isolated()
def test_blocks_meet_again_and_again_and_those_that_have_gone_are_not_waited_for():
    gpu = Gpu(source=KERNELS)
    for seed in range(4):
        cudasim.seed(seed)
        x = gpu.to_device([1, 2, 3, 4])
        gpu.run("rounds", "Pi", x, 3, grid=(4, 1), block=(1, 1, 1))
        assert gpu.to_host(x, 4).tolist() == [12, 12, 28, 28]
        gpu.run("three_of_four", "P", x, grid=(4, 1), block=(1, 1, 1))
        assert gpu.to_host(x, 4).tolist() == [2, 1, 1, 28]
    assert cudasim.problems() == []


@isolated.isolated()
def test_a_thread_that_does_not_come_is_a_problem():
    gpu = Gpu(source=KERNELS)
    with gpu.broken("barrier", "waits for its cluster at"):
        passed_on(gpu, SOME_WAIT_FOR_THEIR_BLOCK)
    (said,) = cudasim.problems()
    assert "of block (2, 0, 0) for others at" in said or "of block (6, 0, 0) for others at" in said


def refused(gpu, blocks):
    """Whether a launch of so many blocks is an error."""
    try:
        gpu.run("three_of_four", "P", gpu.driver.mem_alloc(64), grid=(blocks, 1), block=(1, 1, 1))
    except gpu.driver.Error:
        return True
    return False


@isolated.isolated()
def test_a_grid_is_of_whole_clusters():
    gpu = Gpu(source=KERNELS)
    assert [refused(gpu, blocks) for blocks in (3, 4, 5, 8)] == [True, False, True, False]


@isolated.isolated(device="a100")
def test_a_device_before_sm_90_has_no_clusters():
    assert refused(Gpu(source=KERNELS, architecture="sm_80"), 4)


@isolated.isolated(count=1)
def test_blocks_that_have_not_met_race():
    gpu = Gpu(source=KERNELS)
    np.testing.assert_array_equal(passed_on(gpu, NONE), PASSED)
    assert cudasim.problems() == []
    assert [launch.barriers for launch in traffic.launches()] == [BLOCKS]
    for fault in (NO_MEETING, ONE_BLOCK_MISSES):
        passed_on(gpu, fault)
        (said,) = cudasim.problems()
        assert said.startswith("race: kernel pass_on: thread ") and "in device allocation" in said
        cudasim.clear()


@isolated.isolated(count=1)
def test_shared_memory_of_a_block_is_its_own():
    """All blocks of a cluster touch the same offsets between two meetings: no race, and no block finds another's numbers."""
    gpu = Gpu(source=KERNELS)
    for seed in range(4):
        cudasim.seed(seed)
        assert passed_on(gpu, NONE).min() >= 0
    assert cudasim.problems() == []
