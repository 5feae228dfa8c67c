"""Pictures of what a model sees: every number at its place, whole enlargements, boxes where they belong."""

import dataclasses

import numpy as np
import pytest

from hybrid.pvm import panel
from hybrid.pvm.config import Config
from hybrid.pvm.panel import View
from hybrid.pvm.wiring import wire

CONFIG = Config(grids=((2, 3), (1, 1)), block=(2, 2), hidden=(5, 4), fan_in=3, fan_in_radius=9.0)


def test_hidden_numbers_stand_where_their_unit_stands():
    wiring = wire(CONFIG)
    hidden = np.arange(6 * 5).reshape(6, 5) + 1.0
    found = panel.hidden_map(wiring, 0, hidden)
    assert found.shape == (2 * 2, 3 * 3)  # 5 numbers: 2 rows of 3, the last empty
    assert found[:2, 3:6].tolist() == [[6, 7, 8], [9, 10, 0]]  # unit 1: row 0, column 1
    assert found[2:, :3].tolist() == [[16, 17, 18], [19, 20, 0]]  # unit 3: row 1, column 0


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_rgb_takes_any_number_of_channels(channels):
    image = np.linspace(-0.5, 1.5, 4 * channels).reshape(2, 2, channels)
    found = panel.rgb(image)
    assert found.shape == (2, 2, 3) and found.dtype == np.uint8
    assert found[0, 0, 0] == 0 and found[1, 1, min(channels, 3) - 1 if channels >= 3 else 0] == 255


def test_views_are_all_there_is_to_see():
    frame, prediction = np.zeros((4, 6, 3)), np.full((4, 6, 3), panel.ERROR)
    config = dataclasses.replace(CONFIG, activation="tanh")
    given = config, wire(config), (frame, prediction), [np.zeros((6, 5)), np.zeros((1, 4))]
    found = panel.views(*given, np.zeros((4, 6)), (0.25, 0.5))
    assert list(found) == ["frame", "prediction", "difference", "heatmap", "hidden, layer 0", "hidden, layer 1"]
    assert (found["difference"].picture == panel.colours("inferno")[-1]).all()
    assert found["hidden, layer 0"].units == (2, 3) and found["hidden, layer 1"].units is None
    assert found["hidden, layer 0"].scale[:2] == (-1, 1) and found["heatmap"].scale[:2] == (0, 1)
    assert found["prediction"].note == "mean |error| 0.2500"
    assert found["difference"].note == "repeating the last frame: 0.5000"
    without = panel.views(*given, None)
    assert "heatmap" not in without and without["prediction"].note == "none yet"


def plain(rows: int, columns: int, **fields) -> View:
    return View(np.full((rows, columns, 3), 9, np.uint8), **fields)


@pytest.mark.parametrize(("aspect", "size"), [(640 / 272, (460, 196)), (0.5, (212, 424)), (100.0, (520, 173))])
def test_frames_that_were_stretched_for_the_model_are_shown_with_their_own_aspect(aspect, size):
    whole = panel.side_by_side({"frame": plain(60, 60)}, aspect=aspect)
    wide, high = size
    assert whole.shape == (panel.GAP + panel.CAPTION + high + panel.GAP, wide + 2 * panel.GAP, 3)


def test_boxes_are_drawn_in_shares_of_the_picture_and_absent_ones_are_not():
    box = panel.shares(np.array([6, 3, 12, 6]), (12, 24))
    assert box.tolist() == [0.25, 0.25, 0.5, 0.5]
    whole = panel.side_by_side({"frame": plain(12, 24, boxes=((box, panel.LABEL),))})
    drawn = np.argwhere((whole == panel.LABEL).all(-1)) - (panel.GAP + panel.CAPTION, panel.GAP)
    assert (drawn.min(0).tolist(), drawn.max(0).tolist()) == (
        [212 // 4, 424 // 4],
        [3 * 212 // 4 - 1, 3 * 424 // 4 - 1],
    )
    absent = panel.side_by_side({"frame": plain(12, 24, boxes=((np.array([0.2, 0.2, 0, 0.5]), panel.LABEL),))})
    assert not (absent == panel.LABEL).all(-1).any()
