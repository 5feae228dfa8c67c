"""How far predictions are off, beside repeating the last frame."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.pvm.result import StepResult
from hybrid.pvm.tracking import Pairs, Recent, compared, distance, floats, judged, ratio

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


def result(tick, value=None):
    prediction = None if value is None else np.full(SHAPE, value, np.float32)
    return StepResult(tick, np.zeros(1), prediction, [], [])


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
    figures = judged(error, last)
    assert ratio(error, last) == share == figures["prediction_to_last_frame"]
    assert compared(figures) == said


def test_a_prediction_waits_for_its_frame_which_is_not_decoded_twice():
    feed = Feed()
    recent = Recent(feed)
    pairs, found = Pairs(recent), []
    for tick in range(5):
        assert recent[tick].image.mean() == pytest.approx(tick / 10)
        found.append(pairs.take(result(tick, 0.9 if tick in (1, 3) else None)))
    assert [pair and pair.seen.tick for pair in found] == [None, None, 1, None, 3]
    assert found[2].before.mean() == pytest.approx(0.1) and found[2].after.mean() == pytest.approx(0.2)
    assert feed.asked == list(range(5))
    recent.image(0), recent.image(8)  # of 8 that are kept, 0 is one
    assert feed.asked == [*range(5), 8]


def test_no_more_frames_are_kept_than_are_compared():
    recent = Recent(Feed(), most=3)
    for tick in range(9):
        recent[tick]
    assert sorted(recent._images) == [6, 7, 8]
