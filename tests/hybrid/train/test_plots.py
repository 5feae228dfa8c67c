import csv
import re

import pytest

from hybrid.train import plots

CURVE = [
    {"tick": s, "seconds": s, "examples": 10 * s, "loss": 5.0 - s, "perplexity": 100.0 / s, "evaluation_seconds": s / 2}
    for s in (1, 2, 3)
]


def drawn(monkeypatch):
    """The figures that are saved from here on."""
    kept, save = [], plots._save

    def keep(picture, path):
        kept.append(picture)
        save(picture, path)

    monkeypatch.setattr(plots, "_save", keep)
    return kept


def texts(axis):
    return [text.get_text() for text in axis.get_yticklabels() if text.get_text()]


def test_a_curve_is_png_pdf_and_csv(tmp_path, monkeypatch):
    kept = drawn(monkeypatch)
    plots.curve(tmp_path / "curve.png", {"tree": CURVE, "full": CURVE[:2]}, "perplexity")
    png = (tmp_path / "curve.png").read_bytes()
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") == 7.5 * plots.DOTS
    assert (tmp_path / "curve.pdf").read_bytes().startswith(b"%PDF")
    with open(tmp_path / "curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == ["tree"] * 3 + ["full"] * 2
    assert [float(row["perplexity"]) for row in rows] == [100, 50, 100 / 3, 100, 50]
    seconds, examples = kept[0].axes
    trained = seconds.get_lines()[1]
    legend = [text.get_text() for text in kept[0].legends[0].get_texts()]
    assert legend == ["tree", "full", "validation", "training, running mean"]
    assert trained.get_ydata() == pytest.approx([2.718281828**4, 2.718281828**3, 2.718281828**2])
    assert seconds.get_yscale() == "log" and "(evaluation besides: 1.5, 1 s)" in seconds.get_xlabel()
    assert all(re.fullmatch(r"[\d,.]+", text) for text in texts(seconds)) and len(texts(seconds)) >= 3
    assert examples.get_xlabel() == "examples learned from"
