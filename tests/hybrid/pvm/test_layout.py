from itertools import pairwise

import numpy as np
import pytest

from hybrid.pvm.config import Config
from hybrid.pvm.layout import FEEDBACK, LATERAL, tape_layout
from hybrid.pvm.wiring import Unit, custom

# A 2 x 3 frame of 1 channel; unit 0 sees its first two columns, unit 1 its last, unit 2 both units.
PATCHES = Unit(0, 3, patch=(0, 0, 2, 2), context=(1, 2)), Unit(0, 2, patch=(0, 2, 2, 1))
WIRING = custom((2, 3, 1), [*PATCHES, Unit(1, 4, signal=(1, 0), context=(2,), feedback=(True,))])


def laid_out(**fields):
    return tape_layout(WIRING, Config(grids=((2, 1), (1, 1)), hidden=(3, 4), readout=None, **fields))


def lists(layout, *names):
    return [getattr(layout, name).tolist() for name in names]


def test_what_a_unit_gathers():
    layout = laid_out()
    # The world: 6 pixels, then what the units publish.
    assert layout.published_at.tolist() == [6, 9, 11]
    assert lists(layout, "part_at", "part_from", "part_size") == [[0, 2, 4, 6], [0, 3, 2, 5, 9, 6], [2, 2, 1, 1, 2, 3]]
    assert lists(layout, "signal_at", "copy_at") == [[0, 4, 6, 11], [0, 2, 2, 3]]
    assert lists(layout, "copy_from", "copy_size") == [[9, 11, 11], [2, 4, 4]]
    assert layout.copy_kind.tolist() == [LATERAL, FEEDBACK, FEEDBACK]
    # Behind the features of unit 0, two frames of 4 signals, and of unit 2, two of 5.
    assert (layout.copy_to - layout.tape_at[[0, 0, 2]]).tolist() == [8, 10, 10]
    assert lists(laid_out(sign_of_error=True), "block", "signed") == [[4, 2, 5], [8, 4, 10]]


TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}


@pytest.mark.parametrize("unit", ["simple", "complex", "residual", "complex_residual"])
def test_runs_of_the_tape_do_not_overlap(unit):
    """All that is written, by gathering or by a dense layer, fills the tape once."""
    layout = laid_out(**TWO, unit=unit)
    count = np.zeros(layout.tape_at[-1], int)
    for at, size in zip(layout.out_at, layout.rows, strict=True):
        count[at : at + size] += 1
    for at, size in zip(layout.copy_to, layout.copy_size, strict=True):
        count[at : at + size] += 1
    for at, (low, high) in zip(layout.features_at, pairwise(layout.signal_at), strict=True):
        count[at : at + 2 * (high - low)] += 1
    assert (count == 1).all()
