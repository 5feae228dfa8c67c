"""Readouts, and the boxes that their heatmaps show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu import pvm, units
from cpu.device import Device
from hybrid.pvm import heads
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.heads import Heads
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.wiring import wire


def made(streams=1, dtype=np.float64, placed=False, **fields):
    """The readouts, and the layout that they read from."""
    config = Config(**{"grids": ((2, 3), (1, 2)), "block": (2, 1), "hidden": (3, 2), **fields})
    wiring = wire(config)
    layout = tape_layout(wiring, config)
    readouts = Heads(wiring, layout, config, streams, 7, dtype)
    if placed:
        readouts.place(Device(), units, pvm.collect)
    return readouts, layout


def test_a_tile_reads_every_unit_above_it_and_makes_its_patch():
    readouts, layout = made(readout=Readout(hidden=(4,)))
    assert readouts.shapes == [(4, 3)]
    # Fan-in 2 x 2 over 2 x 3: unit 6 sees columns 0 and 1, unit 7 columns 1 and 2.
    assert readouts.layout.inputs.tolist() == [3 + 2, 3 + 4, 3 + 2] * 2
    assert readouts.layout.outputs.tolist() == [2] * 6
    assert [index.tolist() for index in readouts.index] == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]
    h = layout.hidden_at
    middle = [*range(h[1], h[1] + 3), *range(h[6], h[6] + 2), *range(h[7], h[7] + 2)]
    assert readouts.places[5:12].tolist() == middle
    assert readouts.learned(readouts.weights + 1) and not readouts.learned(readouts.weights.astype(np.float32))


@pytest.mark.parametrize("kind, low, high", [("tile", 0.1, 0.9), ("unit", 0.4, 1.0)])
def test_targets_are_stretched_and_shares_are_not(kind, low, high):
    readouts, _ = made(readout=Readout(kind=kind, block=((2, 1),) if kind == "tile" else ((2, 1), (1, 1))))
    heats = [np.random.default_rng(1).random(shape) for shape in readouts.shapes]
    target = readouts.target(heats)
    assert target.shape == (readouts.order.size,)
    for found, heat in zip(readouts.maps(target[None]), heats, strict=True):
        np.testing.assert_allclose(found[0], low + (high - low) * heat, rtol=0, atol=1e-12)
    for found, heat in zip(readouts.shares(target[None]), heats, strict=True):
        np.testing.assert_allclose(found[0], heat, rtol=0, atol=1e-6)
    outside = readouts.shares(np.stack([np.zeros(target.size), np.ones(target.size)]))
    for part in outside:
        assert (part[0] == 0).all()
        np.testing.assert_allclose(part[1], 1, rtol=0, atol=1e-6)


def test_weights_begin_in_the_range_of_their_rule():
    ours, _ = made(readout=Readout(hidden=(50,)))
    at, n = ours.layout.w_at, ours.layout.inputs
    assert ours.weights.min() < -0.5 * ours.weights.max() < 0
    assert 0.8 < abs(ours.weights[: 50 * (n[0] + 1)]).max() * np.sqrt(n[0]) <= 1
    assert 0.8 < abs(ours.weights[50 * (n[0] + 1) : at[1]]).max() * np.sqrt(50) <= 1
    again, _ = made(readout=Readout(hidden=(50,)))
    assert np.array_equal(again.weights, ours.weights)


def test_box_by_hand():
    heat = np.full((40, 50), 0.25)
    heat[10:20, 5:25] = 0.75  # half-way is 0.5
    box = heads.box_of(heat)
    assert box.dtype == np.float32
    np.testing.assert_allclose(box, [5 - 1, 10 - 0.5, 22, 11], rtol=1e-6)


@pytest.fixture
def box_of(monkeypatch):
    """The box without its margin."""
    monkeypatch.setattr(heads, "GROW", 1)
    return heads.box_of


def test_the_box_is_that_of_the_region_with_the_maximum(box_of):
    heat = np.zeros((40, 50))
    heat[2:10, 2:10] = 0.9
    heat[20:30, 20:30] = 0.9
    heat[30:36, 30:40] = 0.8  # touches with a corner
    heat[36:39, 40:45] = 0.4  # below half-way
    heat[25, 25] = 1
    np.testing.assert_array_equal(box_of(heat), [20, 20, 20, 16])


@pytest.mark.parametrize(
    ("height", "width", "level", "present"),
    [
        (5, 5, 0.9, False),  # 25 of 96 x 96 is not more than that
        (2, 13, 0.9, True),
        (8, 8, 0.49, False),  # more likely not there
        (8, 8, 0.5, True),
    ],
)
def test_what_is_small_or_unlikely_is_absent(box_of, height, width, level, present):
    heat = np.zeros((96, 96))
    heat[3 : 3 + height, 4 : 4 + width] = level
    expected = [4, 3, width, height] if present else [0, 0, 0, 0]
    np.testing.assert_array_equal(box_of(heat), expected)


def test_heat_target_by_hand():
    # 8 rows x 12 columns of pixels on 2 x 3 cells of 4 x 4: the box spans half of row 0, and columns 1 and half of 2
    found = heads.heat_target(np.array([4, 2, 6, 2]), 2, 3, (8, 12, 3))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[0, 0.5, 0.25], [0, 0, 0]])


side = st.tuples(st.integers(0, 19), st.integers(1, 20)).filter(lambda one: sum(one) <= 20)


@given(side, side)
def test_the_area_outside_the_image_is_cut_off(across, down):
    box = np.array([across[0] - 10, down[0] - 10, across[1], down[1]], np.float32)
    whole = np.zeros((40, 40))
    whole[down[0] : sum(down), across[0] : sum(across)] = 1
    np.testing.assert_array_equal(heads.heat_target(box, 20, 20, (20, 20)), whole[10:30, 10:30])
