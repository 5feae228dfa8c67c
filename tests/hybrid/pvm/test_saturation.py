"""Numbers that say nothing are counted as they are defined, and nothing else is."""

import numpy as np

from hybrid.pvm import tracking
from hybrid.pvm.config import Config
from hybrid.pvm.tracking import Counts


def frames(*numbers) -> np.ndarray:
    """One unit's numbers, each given over the frames: (frames, 1, numbers)."""
    return np.array(numbers, np.float32).T[:, None]


def test_counts_by_hand():
    moving = np.linspace(0.1, 0.9, 10)
    at_ends = np.tile([0.0, 1.0], 5)  # jumps from end to end: saturated, not dead
    mostly = np.append(np.full(9, 0.99), 0.5)  # in 9 of 10 frames at the upper end
    often = np.append(np.full(8, 0.99), [0.5, 0.5])
    still = np.full(10, 0.5)  # dead in the middle
    stuck = np.zeros(10)  # dead and saturated
    found = tracking.count(frames(moving, at_ends, mostly, often, still, stuck))
    assert found == Counts(units=1, numbers=6, saturated=3, dead=2, dead_units=0)


def test_a_unit_is_dead_where_all_its_numbers_are():
    hidden = np.full((4, 3, 5), 0.4)
    hidden[:, 0] += np.linspace(0, 0.2, 4)[:, None]
    hidden[1, 1, 2] = 0.6
    found = tracking.count(hidden)
    assert (found.units, found.numbers, found.dead, found.dead_units) == (3, 15, 9, 1)


def test_the_range_is_the_activation_s():
    tanh = Config(grids=(2, 1), activation="tanh")
    assert tracking.bounds(tanh) == (-1, 1)
    assert tracking.bounds(Config(grids=(2, 1), activation="tanh", publish="minmax")) == (0, 1)
    middle = np.zeros((2, 4, 49))
    middle[1] = 0.5
    frames = [[layer, layer[:1]] for layer in middle]
    assert [one.saturated for one in tracking.count_layers(frames, tanh)] == [0, 0]
    assert tracking.count_layers(frames[:1], tanh) == []
    layers = [one._asdict() for one in tracking.count_layers(frames, tanh)]
    assert tracking.saturation_said(layers) == "0 % saturated, 0 % dead, of 245"
    assert "too few frames" in tracking.saturation_said([])
