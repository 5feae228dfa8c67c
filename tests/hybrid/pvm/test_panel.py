"""Pictures of what a model sees: every number at its place, whole enlargements, boxes where they belong."""

import numpy as np
import pytest
from PIL import Image

from hybrid.pvm import panel
from hybrid.pvm.config import Config
from hybrid.pvm.wiring import Unit, custom, wire

CONFIG = Config(grids=((2, 3), (1, 1)), block=(2, 2), hidden=(5, 4), fan_in=3, fan_in_radius=9.0)


def test_hidden_numbers_stand_where_their_unit_stands():
    wiring = wire(CONFIG)
    hidden = np.arange(6 * 5).reshape(6, 5) + 1.0
    found = panel.hidden_map(wiring, 0, hidden)
    assert found.shape == (2 * 2, 3 * 3)  # 5 numbers: 2 rows of 3, the last empty
    assert found[:2, 3:6].tolist() == [[6, 7, 8], [9, 10, 0]]  # unit 1: row 0, column 1
    assert found[2:, :3].tolist() == [[16, 17, 18], [19, 20, 0]]  # unit 3: row 1, column 0


def test_units_of_several_sizes_are_one_block():
    units = [Unit(0, 3, patch=(0, 0, 2, 2)), Unit(0, 2, patch=(0, 2, 2, 2))]
    wiring = custom((2, 4, 1), units)
    assert panel.hidden_map(wiring, 0, np.arange(5.0)[None]).tolist() == [[0, 1, 2], [3, 4, 0]]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_rgb_takes_any_number_of_channels(channels):
    image = np.linspace(-0.5, 1.5, 4 * channels).reshape(2, 2, channels)
    found = panel.rgb(image)
    assert found.shape == (2, 2, 3) and found.dtype == np.uint8
    assert found[0, 0, 0] == 0 and found[1, 1, min(channels, 3) - 1 if channels >= 3 else 0] == 255


def test_heat_goes_from_black_to_white():
    found = panel.heat(np.array([[0.0, 0.5, 1.0]]))
    assert found[0, 0].tolist() == [0, 0, 0] and found[0, 2].tolist() == [255, 255, 255]
    assert (np.diff(found.astype(int).sum(-1)) > 0).all()


def test_views_are_all_there_is_to_see():
    frame, prediction = np.zeros((4, 6, 3)), np.full((4, 6, 3), 0.1)
    hidden = [np.zeros((6, 5)), np.zeros((1, 4))]
    found = panel.views(wire(CONFIG), frame, prediction, hidden, np.zeros((4, 6)))
    assert list(found) == ["frame", "prediction", "difference x 3", "hidden, layer 0", "hidden, layer 1", "heatmap"]
    assert (found["difference x 3"] == round(0.3 * 255 + 0.01)).all()
    assert "heatmap" not in panel.views(wire(CONFIG), frame, prediction, hidden, None)


def test_pictures_stand_side_by_side_enlarged_by_whole_numbers():
    red = np.zeros((7, 10, 3), np.uint8)
    red[3, 4] = 255, 0, 0
    whole = panel.side_by_side({"one": red, "two": red})
    where = np.argwhere((whole == (255, 0, 0)).all(-1))
    zoom = panel.CELL // 10
    assert len(where) == 2 * zoom * zoom
    assert where.min(0).tolist() == [panel.CAPTION + 3 * zoom, panel.GAP + 4 * zoom]
    assert whole.shape == (panel.CELL + panel.CAPTION + panel.GAP, 2 * panel.CELL + 3 * panel.GAP, 3)


def test_ten_pictures_take_two_rows_and_large_ones_are_not_cut():
    picture = np.full((300, 200, 3), 9, np.uint8)
    whole = panel.side_by_side({str(number): picture for number in range(10)})
    assert (whole == 9).all(-1).sum() == 10 * 300 * 200
    assert whole.shape[0] == 2 * (300 + panel.CAPTION + panel.GAP)
    large_map = {"frame": picture[:60, :60], "hidden, layer 0": np.full((833, 833, 3), 9, np.uint8)}
    assert panel.side_by_side(large_map).shape[0] == panel.CELL + panel.CAPTION + panel.GAP


def test_boxes_are_drawn_in_shares_of_the_picture_and_absent_ones_are_not():
    picture = np.zeros((12, 24, 3), np.uint8)
    box = panel.shares(np.array([6, 3, 12, 6]), picture.shape)
    assert box.tolist() == [0.25, 0.25, 0.5, 0.5]
    whole = panel.side_by_side({"frame": picture}, {"frame": [(box, panel.LABEL)]})
    drawn = np.argwhere((whole == panel.LABEL).all(-1))
    assert drawn.min(0).tolist() == [panel.CAPTION + 30, panel.GAP + 60]
    assert drawn.max(0).tolist() == [panel.CAPTION + 89, panel.GAP + 179]
    absent = panel.side_by_side({"frame": picture}, {"frame": [(np.zeros(4), panel.LABEL)]})
    assert not (absent == panel.LABEL).all(-1).any()
    outside = panel.side_by_side({"frame": picture}, {"frame": [(np.array([-1, -1, 3, 3]), panel.FOUND)]})
    assert (outside == panel.FOUND).all(-1).any()


def test_a_picture_is_saved_as_png(tmp_path):
    picture = np.random.default_rng(0).integers(0, 255, (5, 6, 3)).astype(np.uint8)
    panel.save(tmp_path / "picture.png", picture)
    assert np.array_equal(np.array(Image.open(tmp_path / "picture.png")), picture)
