"""Units that move at rates of their own, on the device: as each alone, whichever kernel computes it.

Here is tested `changes` of gpu/units.cu.
"""

import itertools

import numpy as np
import pytest

from tests.support.units import WARPS, Case, check_ensemble


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0.9), (8, 0)])
def test_an_ensemble_is_as_many_units_alone(gpu, batch, momentum):
    check_ensemble(gpu, batch, momentum, steps=2)


HELD_IN_PART = ([2000, 701, 150, 400], [60, 80, 49, 49], [300, 300, 150, 150])


@pytest.mark.parametrize(
    ("batch", "sizes", "momentum"),
    [(1, WARPS, 0), (1, WARPS, 0.9), (1, HELD_IN_PART, 0.9), (1, HELD_IN_PART, 0), (17, WARPS, 0.9)],
)
def test_every_way_to_learn_takes_rates_of_their_own(gpu, batch, sizes, momentum):
    """Held whole, held in part and by GEMMs: each unit moves as where its rate is that of all."""
    found = {}
    for rate in (0.05, 0.25, None):
        case = Case(batch, momentum, sizes).on(gpu)
        case.rate = np.resize(np.float32([0.05, 0.25]), len(sizes[0])) if rate is None else rate
        case.step("tanh")
        found[rate] = [case.get(name) for name in ("weights", "velocity")[: 1 + bool(momentum)]]
    for u, (at, end) in enumerate(itertools.pairwise(case.layout.w_at)):
        same, different = (0.05, 0.25)[u % 2], (0.25, 0.05)[u % 2]
        for mixed, alike, other in zip(found[None], found[same], found[different], strict=True):
            assert (mixed[at:end] != other[at:end]).any()
            if batch > 16:  # a GEMM's factor is multiplied after its sum
                np.testing.assert_allclose(mixed[at:end], alike[at:end], rtol=1e-5, atol=1e-6)
            else:
                assert mixed[at:end].tobytes() == alike[at:end].tobytes()
