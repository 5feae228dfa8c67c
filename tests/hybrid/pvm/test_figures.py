"""How far predictions are off, beside repeating the last frame, and numbers that say nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.models.pvm import Recent
from hybrid.pvm import figures
from hybrid.pvm.config import Config
from hybrid.pvm.figures import Counts, compared, distance, floats, judged

SHAPE = (2, 3, 1)


class Feed:
    """Frame t is grey t/10; it counts how often each is asked for."""

    streams = 1

    def __init__(self):
        self.asked = []

    def __len__(self):
        return 9

    def __getitem__(self, tick):
        self.asked.append(tick)
        return SimpleNamespace(image=np.full((1, *SHAPE), tick / 10, np.float32))


def test_bytes_count_as_shares_of_1():
    image = floats(np.array([0, 51, 255], np.uint8))
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, [0, 0.2, 1], rtol=1e-6)
    assert distance(image, np.zeros(3)) == pytest.approx(0.4)


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


def test_frames_are_kept_and_not_decoded_twice():
    feed = Feed()
    recent = Recent(feed)
    for tick in range(9):
        assert recent[tick].image.mean() == pytest.approx(tick / 10)
    assert recent.image(2).mean() == pytest.approx(0.2) and feed.asked == list(range(9))
    assert recent.image(0).mean() == 0 and feed.asked == [*range(9), 0], "of 8 that are kept, 0 is none"


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


def test_a_unit_is_dead_where_all_its_numbers_are():
    hidden = np.full((4, 3, 5), 0.4)
    hidden[:, 0] += np.linspace(0, 0.2, 4)[:, None]
    hidden[1, 1, 2] = 0.6
    found = figures.count(hidden)
    assert (found.units, found.numbers, found.dead, found.dead_units) == (3, 15, 9, 1)


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
