"""How far predictions are off, beside repeating the last frame, and numbers that say nothing."""

import numpy as np
import pytest

from hybrid.pvm import figures
from hybrid.pvm.config import Config
from hybrid.pvm.figures import Counts, compared, judged


@pytest.mark.parametrize(
    ("error", "last", "share", "said"),
    [
        (0.1, 0.4, 0.25, "prediction off by 0.1000, the last frame by 0.4000 (ratio 0.250)"),
        (0.1, 0.0, None, "prediction off by 0.1000, the last frame by 0.0000"),
        (None, None, None, "too few frames to compare a prediction"),
    ],
)
def test_the_figure_and_its_words(error, last, share, said):
    report = judged(error, last)
    assert report["prediction_to_last_frame"] == share
    assert compared(report) == said


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
    found = figures.count(frames(moving, at_ends, mostly, often, still, stuck))
    assert found == Counts(units=1, numbers=6, saturated=3, dead=2, dead_units=0)
    three = np.full((4, 3, 5), 0.4)  # of the units one moves, one in a number, one not at all
    three[:, 0] += np.linspace(0, 0.2, 4)[:, None]
    three[1, 1, 2] = 0.6
    assert figures.count(three)[:2] == (3, 15) and figures.count(three)[3:] == (9, 1)


def test_the_range_is_the_activation_s():
    tanh = Config(grids=(2, 1), activation="tanh")
    assert figures.bounds(tanh) == (-1, 1)
    assert figures.bounds(Config(grids=(2, 1), activation="tanh", publish="minmax")) == (0, 1)
    middle = np.zeros((2, 4, 49))
    middle[1] = 0.5
    frames = [[layer, layer[:1]] for layer in middle]
    assert [one.saturated for one in figures.count_layers(frames, tanh)] == [0, 0]
    assert figures.count_layers(frames[:1], tanh) == []
    layers = [one._asdict() for one in figures.count_layers(frames, tanh)]
    assert figures.saturation(layers) == "0 % saturated, 0 % dead, of 245"
    assert "too few frames" in figures.saturation([])
