"""Bytes and sectors of tiny kernels whose traffic is known by hand."""

from pathlib import Path

import numpy as np
import pytest

from tests.cudasim import isolated, traffic
from tests.cudasim.traffic import Launch, Moved

KERNELS = Path(__file__).with_name("counted.cu")


class Counted(isolated.Gpu):
    """A device whose kernels are those of counted.cu."""

    def __init__(self):
        super().__init__(source=KERNELS)

    def launch(self, name, arguments, *values, grid=1, block=32) -> Launch:
        """What one launch of the kernel moved."""
        traffic.forget()
        self.run(name, arguments, *values, grid=(grid, 1), block=(block, 1, 1))
        (found,) = traffic.launches()
        assert found.kernel == name
        return found


@isolated.isolated(count=1)
def test_what_kernels_move_is_counted_as_by_hand():
    gpu = Counted()
    x, y = (
        gpu.to_device(np.arange(1060)),
        gpu.to_device(np.zeros(1060)),
    )  # no whole sectors: memory would begin between two

    whole = gpu.launch("copy", "PPi", y, x, 1024, grid=4, block=256)
    assert whole.read == whole.written == Moved(requests=32, bytes=4096, sectors=128, first=4096)
    assert whole.read.full == 1 and whole.read.again == 0

    ragged = gpu.launch("copy", "PPi", y, x, 37, block=64)  # 32 lanes and 5: 4 sectors and 1
    assert ragged.read == Moved(requests=2, bytes=148, sectors=5, first=148)

    shifted = gpu.launch("copy", "PPi", y, int(x) + 4, 32)
    assert shifted.read == Moved(1, 128, 5, 128) and shifted.written == Moved(1, 128, 4, 128)

    strided = gpu.launch("copy_every_eighth", "PP", y, x)
    assert strided.read == strided.written == Moved(1, 128, 32, 128) and strided.read.full == 0.125

    vectors = gpu.launch("copy_vectors", "PP", y, x)
    assert vectors.read == vectors.written == Moved(1, 512, 16, 512)

    added = gpu.launch("add_vectors", "PP", y, x)
    assert added.read == Moved(1, 512, 16, 512) and added.written == Moved(1, 128, 4, 128)

    broadcast = gpu.launch("same_for_all", "PP", y, x, block=64)  # the second warp reads it again
    assert broadcast.read == Moved(2, 8, 2, 4) and broadcast.read.again == 4

    twice = gpu.launch("read_twice", "PP", y, x, block=64)
    assert twice.read == Moved(4, 512, 16, 256) and twice.written == Moved(2, 256, 8, 256)

    copied = gpu.launch("through_shared_memory", "PP", y, x)
    assert copied.read == Moved(1, 512, 16, 512) and copied.written == Moved(1, 128, 4, 128)

    triangle = gpu.launch("triangle", "PP", y, x)  # round r: lanes r to 31
    sectors = sum(4 - r // 8 for r in range(32))
    assert triangle.read == Moved(32, 4 * 32 * 33 // 2, sectors, 4 * 32 * 33 // 2)

    place = gpu.launch("add_in_place", "P", y)
    assert place.read == place.written == Moved(1, 128, 4, 128)

    gpu.run("add_in_place", "P", y)
    assert [launch.kernel for launch in traffic.launches()] == ["add_in_place", "add_in_place"]
    del x, y
    gpu.close()


def test_without_counting_the_reader_says_so(monkeypatch):
    monkeypatch.delenv("CUDASIM_COUNT", raising=False)
    with pytest.raises(RuntimeError, match="count=1"):
        traffic.launches()
