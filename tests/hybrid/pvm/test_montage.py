"""`hybrid pvm fields`: a picture whose every patch is a field where its unit and number stand."""

import json

import numpy as np
import pytest
from PIL import Image

from hybrid.cli import main
from hybrid.pvm import film
from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM
from tests.hybrid.pvm.tiny import command

CONFIG = Config(grids=((2, 3), (1, 1)), block=(3, 2), hidden=(5, 2), init="classic", readout=None)


def test_every_field_stands_where_its_unit_and_number_stand():
    model = PVM(CONFIG)
    image, scale, (rows, columns) = film.montage(model, list(range(6)))
    high, wide = 2 * (3 + 1) + 2, 3 * (2 + 1) + 2  # 5 numbers: 2 rows of 3, a line between, a border
    assert image.shape == (2 * high, 3 * wide, 3)
    assert [number for _, number in rows] == [0, 1] and [number for _, number in columns] == [0, 1, 2]
    assert columns[1][0] == 1.5 * wide
    for unit, number in ((0, 0), (4, 3)):
        field = model.receptive_field(0, unit).weights[number]
        top, left = unit // 3 * high + 1 + number // 3 * 4, unit % 3 * wide + 1 + number % 3 * 3
        expected = np.clip(0.5 + field / (2 * scale), 0, 1)
        np.testing.assert_allclose(image[top : top + 3, left : left + 2], expected)
    assert (image[high + 1 + 4 : high + 1 + 7, 2 * 3 + 1 : 2 * 3 + 3] == film.BETWEEN).all()  # there is no number 5
    every = np.concatenate([model.receptive_field(0, unit).weights.ravel() for unit in range(6)])
    assert (abs(every) > scale).mean() < 0.02


def test_units_that_look_at_nothing_are_grey():
    model = PVM(CONFIG)
    arrays = model.fetch()
    model.put(arrays | {"weights": np.zeros_like(arrays["weights"])})
    image, scale, _ = film.montage(model, [0])
    assert scale == 1 and set(image.ravel()) == {0.5, film.BETWEEN}


@pytest.mark.parametrize(("wide", "zoom"), [(1, 1), (33, 1), (99, 3)])
def test_a_picture_is_enlarged_to_a_width_and_never_made_smaller(tmp_path, monkeypatch, wide, zoom):
    monkeypatch.setattr(film, "WIDE", wide)
    model = PVM(CONFIG)
    drawn, _, _ = film.montage(model, [0, 1, 2])
    film.draw(tmp_path / "fields.png", model, 0, [0, 1, 2])
    with Image.open(tmp_path / "fields.png") as picture:
        assert abs(picture.size[0] - (drawn.shape[1] * zoom + 2 * film.MARGIN)) <= 1


def test_the_command_writes_a_picture_and_says_its_scale(capsys, tmp_path):
    run = tmp_path / "run"
    assert main(command(tmp_path, run, "--steps", "12")) == 0
    capsys.readouterr()
    assert main(["pvm", "fields", str(run), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "layer 0, 16 units, black and white at -" in said and str(run / "fields.png") in said
    with Image.open(run / "fields.png") as picture:
        assert picture.size[0] > 1000
    line = ["pvm", "fields", str(run), "--layer", "1", "--out", str(tmp_path / "one.png"), "--json"]
    assert main([*line, "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["units"] == 4 and (tmp_path / "one.png").exists()
    assert main(["pvm", "fields", str(run), "--layer", "3", "--device", "cpu"]) == 2
    assert "layer: found 3" in capsys.readouterr().err


def test_the_picture_names_rows_and_columns_where_they_are(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *path, **format: drawn.append(figure))
    model = PVM(CONFIG)
    film.draw(tmp_path / "montage.png", model, 0, list(range(6)))
    axis, (rows, columns) = drawn[0].axes[0], film.montage(model, list(range(6)))[2]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["column 0", "column 1", "column 2"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["row 0", "row 1"]
    assert axis.get_xticks().tolist() == [at for at, _ in columns] and axis.get_yticks().tolist() == [
        at for at, _ in rows
    ]
