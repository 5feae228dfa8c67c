"""The picture of a run: its claim, prediction against repeating the last frame, can be read off the axis."""

import csv

import numpy as np
import pytest
from matplotlib.figure import Figure

from hybrid.models import pvm


def points(start: float, end: float) -> list[dict]:
    """A run whose error falls from start to end."""
    errors = np.geomspace(start, end, 100)
    return [
        {"step": 10 * k, "seconds": 0.1 * k, "error": [0.1, 0.2], "prediction": float(error), "last_frame": 0.0305}
        for k, error in enumerate(errors)
    ]


@pytest.fixture
def frames(monkeypatch):
    """The axes of the last picture that was drawn, that of the next frame last."""
    found, real = [], Figure.subplots
    monkeypatch.setattr(Figure, "subplots", lambda *given, **how: found.append(real(*given, **how)) or found[-1])
    return lambda: found[-1][-1]


def test_the_legend_says_the_means_of_the_last_tenth_and_the_numbers_are_beside(tmp_path, frames):
    run = points(0.2, 0.02)
    pvm.draw_curve(tmp_path / "curve.png", run)
    said = [text.get_text() for text in frames().get_legend().get_texts()]
    mean = np.mean([point["prediction"] for point in run[-10:]])
    assert said == [f"prediction: {mean:.4f}", "repeating the last frame: 0.0305"]
    rows = list(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert [float(row["prediction"]) for row in rows] == [point["prediction"] for point in run]
    assert [float(row["error of layer 1"]) for row in rows] == [0.2] * 100
    pvm.draw_curve(tmp_path / "none.png", [{"step": 0, "error": [0.1], "prediction": None, "last_frame": None}])
    pvm.draw_curve(tmp_path / "empty.png", [])
