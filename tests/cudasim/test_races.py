"""Races between threads are seen in kernels that are counted, in any memory and whatever numbers come out."""

from pathlib import Path

import numpy as np

from tests import cudasim
from tests.cudasim import isolated

KERNELS = Path(__file__).with_name("races.cu")


class Watched(isolated.Gpu):
    """A device whose kernels are those of races.cu."""

    def __init__(self):
        super().__init__(source=KERNELS)
        self.x, self.y = self.to_device(np.zeros(64)), self.to_device(np.zeros(64))

    def races(self, name, *values, arguments="P", grid=1, block=64):
        """What is said of one launch."""
        cudasim.clear()
        self.run(name, arguments, self.y, *values, grid=(grid, 1), block=(block, 1, 1))
        return cudasim.problems()


@isolated.isolated(count=1)
def test_threads_that_share_a_number_must_meet_between(gpu: Watched):
    for way, arguments, between in (("", "Pi", ()), ("in_memory_", "PPi", (gpu.x,))):
        meetings = [f"pass_on_{way}{how}" for how in ("unmet", "shuffled", "in_warp", "in_block")]
        for distance, right in ((0, meetings), (1, meetings[2:]), (32, meetings[3:])):
            for kernel in meetings:
                said = gpu.races(kernel, *between, distance, arguments=arguments)
                expected = [f"race: kernel {kernel}"] * (kernel not in right)
                assert [line.split(": thread ")[0] for line in said] == expected


@isolated.isolated(count=1)
def test_a_number_is_read_by_all_before_one_writes_it(gpu: Watched):
    (said,) = gpu.races("overwrite")
    assert "byte 0 of 4 of shared memory, and nothing orders them; the second " in said


@isolated.isolated(count=1)
def test_an_asynchronous_copy_reads_until_it_is_waited_for(gpu: Watched):
    assert gpu.races("copy_while_written", False, arguments="Pi") == []
    (said,) = gpu.races("copy_while_written", True, arguments="Pi")
    assert "offset 0 in device allocation #2" in said


@isolated.isolated(count=1)
def test_atomics_race_with_plain_accesses_alone(gpu: Watched):
    assert gpu.races("count_together") == gpu.races("count_blocks_atomically", grid=3) == []
    (said,) = gpu.races("look_early")
    assert "shared memory" in said
    (said,) = gpu.races("count_and_look", grid=2, block=1)
    assert "offset 0 in device allocation #2" in said


@isolated.isolated(count=1)
def test_lanes_of_a_warp_may_write_one_value(gpu: Watched):
    for kernel in ("write_same", "write_same_shared"):
        assert gpu.races(kernel, 32, arguments="Pi") == []
        assert len(gpu.races(kernel, 64, arguments="Pi")) == 1
    assert gpu.races("write_own", 1, arguments="Pi") == []
    (said,) = gpu.races("write_own", 2, arguments="Pi")
    assert said.endswith("the second writes")


@isolated.isolated(count=1)
def test_blocks_never_meet(gpu: Watched):
    tiles = {"arguments": "Pi", "grid": 4, "block": 16}
    assert gpu.races("tile", 16, **tiles) == gpu.races("tile_bytes", 16, **tiles) == []
    for kernel, offset in (("tile", 60), ("tile_bytes", 15)):
        (said,) = gpu.races(kernel, 15, **(tiles | {"grid": 2}))
        assert said.startswith(f"race: kernel {kernel}: thread ")
        assert f"offset {offset} in device allocation #2 of 256" in said
        assert "thread 15 of block (0, 0, 0)" in said and "thread 0 of block (1, 0, 0)" in said
    for kernel in ("shift_in_place", "count_blocks"):
        assert gpu.races(kernel, grid=1, block=1) == []
        (said,) = gpu.races(kernel, grid=2, block=1)
        assert "block (1, 0, 0)" in said


@isolated.isolated()
def test_kernels_that_are_not_counted_are_not_watched(gpu: Watched):
    assert gpu.races("count_blocks", grid=2) == []
