"""How far predictions are off, beside repeating the last frame."""

import pytest

from hybrid.pvm.config import Config
from hybrid.pvm.figures import bounds, compared, judged


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


def test_the_range_is_the_activation_s():
    tanh = Config(grids=(2, 1), activation="tanh")
    assert bounds(tanh) == (-1, 1)
    assert bounds(Config(grids=(2, 1), activation="tanh", publish="minmax")) == (0, 1)
