"""Optimisers of dense weights on the device, against the oracle that the CPU is held to as well."""

import numpy as np
import pytest

from gpu import optimiser
from tests.support.optimisers import STATES, Move, check_formula

MOVE = Move(rate=0.03, scale=1 / 7, decay=0.0)
SIZES = (1, 3, 4, 1027, 3 * optimiser.PART + 5)  # less than four numbers, around four, more parts than one


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize(
    ("size", "decay", "most"), [(1, 0.0, 1.5), (3, 0.1, None), (4, 0.0, 1e9), (1027, 0.1, 1.5), (SIZES[-1], 0.1, 1.5)]
)
def test_every_optimiser_follows_its_formula(gpu, kind, decay, most, size):
    check_formula(gpu, kind, size, MOVE._replace(decay=decay), most)


@pytest.mark.parametrize("size", SIZES)
def test_parts_of_a_gradient_are_merged_to_the_bit_and_cleared(gpu, size):
    grad, part = np.random.default_rng(0).normal(size=(2, size)).astype(np.float32)
    there = gpu.put(grad), gpu.put(part)
    gpu.run(optimiser.merge, *there)
    assert gpu.get(there[0]).tobytes() == (grad + part).tobytes() and not gpu.get(there[1]).any()


def test_a_norm_of_nan_stays_visible(gpu):
    grad = gpu.put(np.array([1, np.nan, 2], np.float32))
    work = gpu.run(optimiser.workspace, 3)
    gpu.run(optimiser.clip, work, grad, 1.0, 1.0)
    assert np.isnan(gpu.get(work.factor)).all()


@pytest.mark.parametrize(("size", "parts"), [(1, 1), (4096, 1), (4097, 2), (10**8, 1024)])
def test_a_norm_has_as_many_parts_as_pay(gpu, size, parts):
    work = gpu.run(optimiser.workspace, size)
    assert (work.parts.size, work.factor.size) == (parts, 1)
