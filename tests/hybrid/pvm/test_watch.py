"""Films of what a model sees: what stands in a picture. The commands that write them are tested in test_evaluate.py."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.feeds.video.clip import Frame
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.pvm import film, panel
from hybrid.pvm.evaluate import Watcher
from hybrid.pvm.model import PVM
from tests.hybrid.pvm.tiny import TINY


@pytest.fixture
def shown(monkeypatch):
    """What `panel.side_by_side` was given, picture by picture."""
    given = []
    monkeypatch.setattr(panel, "side_by_side", lambda views, **more: given.append((views, more)))
    return given


def test_captions_tell_the_error_of_the_prediction_beside_that_of_the_frame_before(shown):
    scene, (model, twin) = Scene((8, 8, 3), 4), (PVM.from_config(TINY | {"readout": None}) for _ in range(2))
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
    ("box", "found", "legend"),
    [
        (None, None, []),
        ((2, 4, 4, 2), None, [(panel.LABEL, "label")]),
        ((0, 0, 0, 0), None, [(panel.LABEL, "label: absent")]),
        (None, (2, 4, 4, 2), [(panel.FOUND, "tracker, from the heatmap")]),
        ((2, 4, 4, 2), (0, 0, 0, 0), [(panel.LABEL, "label"), (panel.FOUND, "tracker: absent")]),
    ],
)
def test_boxes_in_shares_of_the_frame_and_their_legend(monkeypatch, box, found, legend):
    monkeypatch.setattr(film, "box_in", lambda seen, shape: np.array(found, np.float32))
    frame = Frame(np.zeros((8, 16, 3), np.uint8), None if box is None else np.array(box, np.float32))
    drawn, said = film._boxes(frame, SimpleNamespace(heatmaps=found and [0]))
    assert said == legend
    expected = [[x / 16, y / 8, w / 16, h / 8] for x, y, w, h in filter(None, (box, found))]
    assert [shares.tolist() for shares, _ in drawn] == expected
    assert [colour for _, colour in drawn] == [colour for colour, _ in legend]
