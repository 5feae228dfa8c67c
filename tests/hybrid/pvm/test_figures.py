"""How far predictions are off, beside repeating the last frame, and numbers that stand still."""

import numpy as np
import pytest

from hybrid.pvm.config import Config
from hybrid.pvm.figures import bounds, compared, dead_share, judged


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


def test_dead_numbers_by_hand():
    three = np.full((4, 3, 5), 0.4)  # of the units one moves, one in a number, one not at all
    three[:, 0] += np.linspace(0, 0.2, 4)[:, None]
    three[1, 1, 2] = 0.6
    ends = np.tile([0.0, 1.0], 2)[:, None, None]  # a layer of one number, which jumps from end to end
    frames = list(zip(three, ends, strict=True))
    assert dead_share(frames, Config(grids=(2, 1))) == pytest.approx(9 / 16)
    assert dead_share(frames[:1], Config(grids=(2, 1))) == 0


def test_the_range_is_the_activation_s():
    tanh = Config(grids=(2, 1), activation="tanh")
    assert bounds(tanh) == (-1, 1)
    assert bounds(Config(grids=(2, 1), activation="tanh", publish="minmax")) == (0, 1)
    frames = [[np.zeros((1, 1))], [np.full((1, 1), 0.015)]]  # 1.5 % of 0 to 1
    assert dead_share(frames, tanh) == 1 and dead_share(frames, Config(grids=(2, 1))) == 0
