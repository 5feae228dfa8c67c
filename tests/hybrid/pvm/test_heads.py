import numpy as np
import pytest

from cpu import pvm, units
from cpu.device import Device
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.heads import Heads
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.rules import wire


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


def test_weights_have_learned_where_they_are_not_as_they_began():
    readouts, _ = made(readout=Readout(hidden=(4,)))
    assert not readouts.learned(readouts.weights.astype(np.float32))
    assert readouts.learned(readouts.weights + 1)


def test_a_unit_reads_itself_and_makes_a_block_of_its_layers_heatmap():
    readouts, layout = made(readout=Readout(kind="unit", block=((1, 2), (3, 1))))
    assert readouts.shapes == [(2, 6), (3, 2)]
    assert readouts.layout.inputs.tolist() == [3] * 6 + [2] * 2
    assert readouts.layout.hidden.tolist() == [6] * 6 + [4] * 2
    assert [index.tolist() for index in readouts.index[5:]] == [[10, 11], [12, 14, 16], [13, 15, 17]]
    expected = [at + np.arange(size) for at, size in zip(layout.hidden_at, layout.hidden, strict=True)]
    assert readouts.places.tolist() == np.concatenate(expected).tolist()


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


@pytest.mark.parametrize(
    "readout, found",
    [(Readout(depth=2), r"readout\.depth: found 2"), (Readout(hidden=(4, 4)), r"readout\.hidden: found \(4, 4\)")],
)
def test_what_is_not_built_is_refused(readout, found):
    with pytest.raises(ValueError, match=found):
        made(readout=readout)
