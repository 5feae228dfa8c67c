"""Sums of the lanes of eight vectors: exact on small integers, in the order of `totals`."""

import numpy as np
import pytest

from cpu.runtime.compiled import launched
from cpu.vectors.simd import load
from cpu.words import store_dots


@launched()
def _dots(out, values, pitch):
    store_dots(
        out, 1, pitch,
        load(values, 0, 16, 512), load(values, 16, 16, 512), load(values, 32, 16, 512), load(values, 48, 16, 512),
        load(values, 64, 16, 512), load(values, 80, 16, 512), load(values, 96, 16, 512), load(values, 112, 16, 512),
    )  # fmt: skip


@pytest.mark.parametrize("pitch", [4, 6])
def test_sums_lie_in_two_rows_of_four(pitch):
    values = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    out = np.full(12, 9, np.float32)
    _dots(out, values.ravel(), pitch)
    halved = values
    while halved.shape[1] > 1:
        halved = halved[:, : halved.shape[1] // 2] + halved[:, halved.shape[1] // 2 :]
    expected = np.full(12, 9, np.float32)
    expected[1:5], expected[1 + pitch : 5 + pitch] = halved[:4, 0], halved[4:, 0]
    assert out.tobytes() == expected.tobytes()
