"""What tiny kernels do is counted: their bytes, sectors, passes, atomics and meetings are known by hand."""

from pathlib import Path

import numpy as np
import pytest

from tests.cudasim import isolated, traffic
from tests.cudasim.traffic import Atomics, Launch, Moved, Shared

KERNELS = Path(__file__).with_name("counted.cu")


class Counted(isolated.Gpu):
    """A device whose kernels are those of counted.cu."""

    def __init__(self):
        super().__init__(source=KERNELS)

    def launch(self, name, arguments, *values, grid=1, block=32, shared=0) -> Launch:
        """What one launch of the kernel did."""
        traffic.forget()
        self.run(name, arguments, *values, grid=(grid, 1), block=(block, 1, 1), shared=shared)
        (found,) = traffic.launches()
        assert found.kernel == name
        return found


@isolated.isolated(count=1)
def test_what_kernels_move_is_counted_as_by_hand(gpu: Counted):
    # No whole number of sectors: under an even seed memory that is not aligned would begin within one.
    x, y = (gpu.to_device(numbers) for numbers in (np.arange(1060), np.zeros(1060)))

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


@isolated.isolated(count=1)
def test_lanes_that_ask_a_bank_for_different_words_take_turns(gpu: Counted):
    y = gpu.driver.mem_alloc(256)
    passes = {  # by stride; of floats: all one word; each bank; every second; ...
        "through_floats": (1, {0: 1, 1: 1, 2: 2, 3: 1, 16: 16, 32: 32, 33: 1}),
        "through_pairs": (2, {0: 2, 1: 2, 2: 4, 16: 32}),
        "through_vectors": (4, {0: 4, 1: 4, 2: 8, 8: 32}),
        "through_bytes": (1, {0: 1, 1: 1, 4: 1, 8: 2, 128: 32}),
    }
    for kernel, (least, by_stride) in passes.items():
        for stride, taken in by_stride.items():
            found = gpu.launch(kernel, "Pi", y, stride, shared=1 << 14)
            assert found.shared_read == found.shared_written == Shared(1, least, taken), (kernel, stride)
            assert found.shared_read.conflicts == taken - least
    few = gpu.launch("through_vectors", "Pi", y, 1, block=8, shared=1 << 10)  # who is not there needs no pass
    assert few.shared_read == Shared(1, 1, 1)
    blocks = gpu.launch("through_floats", "Pi", y, 2, grid=3, block=64, shared=1 << 10)
    assert blocks.shared_read == Shared(6, 6, 12)


@isolated.isolated(count=1)
def test_atomics_are_counted_by_how_many_meet(gpu: Counted):
    y = gpu.driver.mem_alloc(256)
    for sharers in (1, 4, 32):
        found = gpu.launch("count_at", "Pi", y, sharers, grid=2, block=48)
        assert found.atomics == Atomics(requests=4, lanes=96, turns=2 * (sharers + min(sharers, 16)))
    shared = gpu.launch("count_shared", "Pi", y, 8, block=64)
    assert shared.atomics == Atomics(requests=4, lanes=128, turns=32)
    assert shared.shared_written == shared.shared_read == Shared(2, 2, 2)  # atomics apart


@isolated.isolated(count=1)
def test_meetings_and_marked_steps_are_counted(gpu: Counted):
    y = gpu.driver.mem_alloc(256)
    found = gpu.launch("meet_often", "Pii", y, 3, 5, grid=2, block=96)
    assert (found.barriers, found.warp_barriers, found.chain) == (6, 2 * 3 * 5, 0)
    assert gpu.launch("take_steps", "Pi", y, 7, grid=3, block=40).chain == 7 + 39 + 200


def test_without_counting_the_reader_says_so(monkeypatch):
    monkeypatch.delenv("CUDASIM_COUNT", raising=False)
    with pytest.raises(RuntimeError, match="count=1"):
        traffic.launches()
