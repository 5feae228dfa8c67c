"""What goes into the world of a Predictive Vision Model on the device, and comes out of it, beside a tick."""

import numpy as np
import pytest

from gpu import pvm


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_show(gpu, launched, dtype):
    frame = np.arange(2 * 300).reshape(2, 300).astype(dtype)
    world = gpu.put(np.full((2, 301), 7, np.float32))
    gpu.run(pvm.show, world, gpu.put(frame), 1 / 255)
    found = gpu.get(world)
    assert launched == {"show_bytes" if dtype == np.uint8 else "show_numbers": ((2, 2), 256)}
    assert np.array_equal(found[:, :300], frame * np.float32(1 / 255))
    assert np.all(found[:, 300] == 7)


@pytest.mark.parametrize("size", [1, 256, 257, 300])  # around a block
def test_what_is_collected_is_spread_again(gpu, launched, size):
    rng = np.random.default_rng(0)
    source, index = rng.random((3, 500), np.float32), rng.permutation(500)[:size].astype(np.int32)
    before = rng.random((3, 500), np.float32)
    out, back = gpu.put(np.full((3, size), np.nan, np.float32)), gpu.put(before)
    gpu.run(pvm.collect, out, gpu.put(source), gpu.put(index))
    gpu.run(pvm.spread, back, out, gpu.put(index))
    blocks = (-(-size // 256), 3), 256
    assert launched == {"collect": blocks, "spread": blocks}
    before[:, index] = source[:, index]
    np.testing.assert_array_equal(gpu.get(out), source[:, index])
    for kernel in (pvm.collect, pvm.spread):  # nothing to do
        gpu.run(kernel, back, gpu.empty((3, 0), np.float32), gpu.put(index[:0]))
    np.testing.assert_array_equal(gpu.get(back), before)
