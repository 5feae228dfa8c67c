"""The language model as options describe it: how the text is cut (hybrid/models/_text.py), and what it is measured on."""

import pytest

from hybrid.cli.options import read
from hybrid.models import language
from hybrid.train import runs
from hybrid.train.options import choose


def job(path, *options):
    said = vars(read(["train", "language", "--text", str(path), "--min-count", "1", *options]))
    taken = {name: value for name, value in said.items() if name not in ("command", "debug", "json", "quiet", "steps")}
    return language.prepare(choose(taken.pop("kind"), **taken))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text(" = A @-@ b = \n\n The <unk> b\n")
    return path


@pytest.mark.parametrize(("readout", "trunk_rate"), [("tree", 0.2), ("full", 0.05), ("sampled", 0.05)])
def test_by_default_it_learns_as_in_the_published_table(text, readout, trunk_rate):
    """docs/measurements.md, "When does the tree win?"; that a run has four epochs docs/runs.md says, too."""
    options = job(text, "--valid", str(text), "--readout", readout).options
    assert options["epochs"] == 4
    assert [options[name] for name in ("rate", "rows_rate", "trunk_rate")] == [0.02, 0.2, trunk_rate]


def test_a_readout_of_neighbours_tells_its_recall_beside_perplexity(text, tmp_path):
    """At points of the curve, where its index stands then, and in the report and `hybrid eval`, which build it."""
    text.write_text("a b c d e f g h . b d f h a c e g .\n" * 40)
    out = str(tmp_path / "run")
    more = "--width 4 --hidden 4 --readout-width 4 --batch 64 --negatives 3 --epochs 1".split()
    options = ("--readout", "neighbours", "--device", "cpu", *more)
    made = job(text, "--valid", str(text), "--out", out, *options)
    report = runs.start({**made.options, "out": out})
    assert all(point["neighbours recall@10"] == 1 for point in report["curve"])
    assert min(report["neighbours queries/s"], report["exact queries/s"]) > 0 and report["readout"] == "neighbours"
    figures = runs.evaluate(out, {"device": "cpu", "threads": 1, "checkpoint": None, "text": None})
    assert figures["perplexity"] == pytest.approx(report["perplexity"]) and figures["neighbours recall@10"] == 1
