"""Races between the threads of a block, in shared memory, are seen in kernels that are counted, whatever numbers come out."""

from pathlib import Path

import numpy as np

from tests import cudasim
from tests.cudasim import isolated

KERNELS = Path(__file__).with_name("counted.cu")


@isolated.isolated(count=1)
def test_threads_that_share_a_number_must_meet_between():
    gpu = isolated.Gpu(source=KERNELS)
    y = gpu.to_device(np.zeros(64))

    def races(name, *values, arguments="P"):
        """What is said of one launch with two warps."""
        cudasim.clear()
        gpu.run(name, arguments, y, *values, block=(64, 1, 1))
        return cudasim.problems()

    for distance, kernels in ((1, ("in_warp", "in_block")), (32, ("in_block",)), (0, ("unmet", "shuffled", "in_warp"))):
        for kernel in kernels:
            assert races(f"pass_on_{kernel}", distance, arguments="Pi") == [], (kernel, distance)
    for distance, kernels in ((1, ("unmet", "shuffled")), (32, ("unmet", "shuffled", "in_warp"))):
        for kernel in kernels:
            (said,) = races(f"pass_on_{kernel}", distance, arguments="Pi")
            assert said.startswith(f"race: kernel pass_on_{kernel}: threads "), (kernel, distance)
    (said,) = races("overwrite")
    assert "byte 0 of 4 of shared memory" in said
    assert races("count_together") == []
    cudasim.clear()
    y.free()
    gpu.close()
