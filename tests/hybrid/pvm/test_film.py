"""Pictures and films: receptive fields, what stands in a picture, the commands that write them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from hybrid.cli import main
from hybrid.feeds.video.clip import Frame
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.pvm import film, panel
from hybrid.pvm.config import Config
from hybrid.pvm.evaluate import Watcher
from hybrid.pvm.model import PVM
from tests.hybrid.pvm.tiny import TINY, command

CONFIG = Config(grids=((2, 3), (1, 1)), block=(3, 2), hidden=(5, 2), init="classic", readout=None)


def test_every_field_stands_where_its_unit_and_number_stand():
    model = PVM(CONFIG)
    image, scale = film.montage(model, list(range(6)))
    high, wide = 2 * (3 + 1) + 2, 3 * (2 + 1) + 2  # 5 numbers: 2 rows of 3, a line between, a border
    assert image.shape == (2 * high, 3 * wide, 3)
    for unit, number in ((0, 0), (4, 3)):
        field = model.receptive_field(0, unit).weights[number]
        top, left = unit // 3 * high + 1 + number // 3 * 4, unit % 3 * wide + 1 + number % 3 * 3
        expected = np.clip(0.5 + field / (2 * scale), 0, 1)
        np.testing.assert_allclose(image[top : top + 3, left : left + 2], expected)
    assert (image[high + 1 + 4 : high + 1 + 7, 2 * 3 + 1 : 2 * 3 + 3] == film.BETWEEN).all()  # there is no number 5
    every = np.concatenate([model.receptive_field(0, unit).weights.ravel() for unit in range(6)])
    assert (abs(every) > scale).mean() < 0.02
    arrays = model.fetch()
    model.put(arrays | {"weights": np.zeros_like(arrays["weights"])})
    image, scale = film.montage(model, [0])
    assert scale == 1 and set(image.ravel()) == {0.5, film.BETWEEN}


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


def test_captions_tell_the_error_of_the_prediction_beside_that_of_the_frame_before(monkeypatch):
    shown = []
    monkeypatch.setattr(panel, "side_by_side", lambda views, **more: shown.append((views, more)))
    scene, (model, twin) = Scene((8, 8, 3), 4), (PVM(Config.from_fields(TINY | {"readout": None})) for _ in range(2))
    watcher = Watcher(model)
    frames = [scene[number] for number in range(4)]
    for frame in frames:
        film._looked(watcher, frame, 1.5, "mine")
    real = [frame.image / np.float32(255) for frame in frames]
    predicted = [twin.step(image).prediction for image in real]
    for number, (views, more) in enumerate(shown):
        assert more["title"] == "mine" and more["aspect"] == 1.5
        expected = ("none yet", "none yet")
        if number:
            off, still = (np.abs(one - real[number]).mean() for one in (predicted[number - 1], real[number - 1]))
            assert f"{off:.4f}" != f"{still:.4f}"
            expected = f"mean |error| {off:.4f}", f"repeating the last frame: {still:.4f}"
        assert (views["prediction"].note, views["difference"].note) == expected


@pytest.mark.parametrize(
    ("box", "found", "note"),
    [
        (None, None, ""),
        ((2, 4, 4, 2), None, "green: label"),
        ((0, 0, 0, 0), None, "green: label (absent)"),
        (None, (2, 4, 4, 2), "blue: heatmap"),
        ((2, 4, 4, 2), (0, 0, 0, 0), "green: label, blue: heatmap (absent)"),
    ],
)
def test_boxes_in_shares_of_the_frame_and_the_note_on_them(monkeypatch, box, found, note):
    monkeypatch.setattr(film, "box_in", lambda seen, shape: np.array(found, np.float32))
    frame = Frame(np.zeros((8, 16, 3), np.uint8), None if box is None else np.array(box, np.float32))
    drawn, said = film._boxes(frame, SimpleNamespace(heatmaps=found and [0]))
    assert said == note
    expected = [[x / 16, y / 8, w / 16, h / 8] for x, y, w, h in filter(None, (box, found))]
    assert [shares.tolist() for shares, _ in drawn] == expected
    colours = (panel.LABEL, box), (panel.FOUND, found)
    assert [colour for _, colour in drawn] == [colour for colour, one in colours if one]
