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


def places(layout, u=0):
    """Where the features, the hidden vector and what a unit predicts stand."""
    return [int(at[u]) for at in (layout.features_at, layout.hidden_at, layout.predicted_at, layout.residual_at)]


def dense(layout, u):
    """(rows, columns, pulled, reads, writes) of a unit's dense layers; places count from the beginning of its tape."""
    start = layout.tape_at[u]
    k = slice(layout.layer_at[u], layout.layer_at[u + 1])
    parts = (layout.rows, layout.columns, layout.pulled, layout.in_at - start, layout.out_at - start)
    return [tuple(map(int, row)) for row in zip(*(part[k] for part in parts), strict=True)]


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


def test_a_simple_unit_on_its_tape():
    layout = laid_out()
    # features 8, context 6, hidden 3, prediction 8; then 4, 0, 2, 4; then 10, 4, 4, 10
    assert layout.tape_at.tolist() == [0, 25, 35, 63]
    assert [places(layout, u) for u in range(3)] == [[0, 14, 17, -1], [25, 29, 31, -1], [35, 49, 53, -1]]
    assert [dense(layout, u) for u in range(3)] == [
        [(3, 14, 0, 0, 14), (8, 3, 3, 14, 17)],
        [(2, 4, 0, 0, 4), (4, 2, 2, 4, 6)],
        [(4, 14, 0, 0, 14), (10, 4, 4, 14, 18)],
    ]
    assert layout.w_at.tolist() == [0, 45, 77, 87, 99, 159]
    assert (layout.features, layout.steps, layout.newest_first) == (0b10001, 2, True)
    assert lists(layout, "block", "signed") == [[4, 2, 5], [0, 0, 0]]
    assert laid_out(sign_of_error=True).signed.tolist() == [8, 4, 10]


CLASSIC = {"wiring": "classic", "features": ("signal", "integral"), "predict_steps": 1}
TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}


def test_a_complex_unit_has_a_layer_more():
    layout = laid_out(**CLASSIC, unit="complex")
    assert dense(layout, 0) == [(6, 14, 0, 0, 14), (3, 6, 6, 14, 20), (4, 3, 3, 20, 23)]
    later = laid_out(**CLASSIC, unit="complex", context_to_output=True)
    assert dense(later, 0) == [(6, 8, 0, 0, 8), (3, 12, 6, 8, 20), (4, 3, 3, 20, 23)]
    assert later.copy_to[:2].tolist() == [14, 16]
    assert later.features == 0b00101
    assert not later.newest_first


def test_residual_units_read_the_context_first():
    layout = laid_out(**TWO, unit="residual")
    # context 6, a 6, features 8, hidden 3, two predictions of 8
    assert dense(layout, 0) == [(6, 6, 0, 0, 6), (3, 14, 0, 6, 20), (8, 6, 6, 6, 23), (8, 3, 3, 20, 31)]
    assert places(layout) == [12, 20, 23, 31]
    deep = laid_out(**TWO, unit="complex_residual")
    assert dense(deep, 0)[:3] == [(9, 6, 0, 0, 6), (6, 9, 9, 6, 15), (6, 14, 0, 15, 29)]
    assert dense(deep, 0)[3:] == [(3, 6, 6, 29, 35), (8, 6, 6, 15, 38), (8, 3, 3, 35, 46)]
    assert places(deep) == [21, 35, 38, 46]
    assert deep.tape_at[1] == 54


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
