import numpy as np

from cpu.runtime import memory
from cpu.runtime.memory import pass_over, read_modify_write


def test_a_pass_leaves_the_numbers_as_they_are():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(700, 300)).astype(np.float32), rng.normal(size=1000)]
    before = [array.tobytes() for array in arrays]
    assert 0 < pass_over(arrays) < 1e13
    assert [array.tobytes() for array in arrays] == before


def test_the_array_has_so_many_megabytes(monkeypatch):
    sizes = []
    monkeypatch.setattr(memory, "pass_over", lambda arrays, step: sizes.append(sum(one.nbytes for one in arrays)))
    assert len(read_modify_write(megabytes=3, repeat=2)) == 2 and sizes == [3 << 20] * 3
