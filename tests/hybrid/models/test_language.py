"""The language model as options describe it: how the text is cut (hybrid/models/_text.py), and what it is measured on."""

import json
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.cli.options import read
from hybrid.models import language
from hybrid.train import runs
from hybrid.train.options import choose


def job(path, *options):
    said = vars(read(["train", "language", "--text", str(path), "--min-count", "1", *options]))
    taken = {name: value for name, value in said.items() if name not in ("command", "debug", "json", "quiet", "steps")}
    return language.prepare(choose(taken.pop("kind"), **taken))


def words(corpus):
    return corpus.vocabulary.decode(corpus.ids)


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
    more = (
        "--width",
        "4",
        "--hidden",
        "4",
        "--readout-width",
        "4",
        "--batch",
        "64",
        "--negatives",
        "3",
        "--epochs",
        "1",
    )
    options = ("--readout", "neighbours", "--index", "exact", "--rebuild", "3", "--device", "cpu", *more)
    made = job(text, "--valid", str(text), "--out", out, *options)
    report = runs.start({**made.options, "out": out})
    assert all(point["neighbours recall@10"] == 1 for point in report["curve"])
    assert min(report["neighbours queries/s"], report["exact queries/s"]) > 0 and report["readout"] == "neighbours"
    figures = runs.evaluate(out, {"device": "cpu", "threads": 1, "checkpoint": None, "text": None})
    assert figures["perplexity"] == pytest.approx(report["perplexity"]) and figures["neighbours recall@10"] == 1


def test_eval_refuses_a_validation_text_that_has_changed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("text.txt", "valid.txt"):
        Path(name).write_text("one two three four\n" * 20)
    small = ["--width", "4", "--hidden", "4", "--readout-width", "4", "--epochs", "1", "--threads", "1"]
    assert main(["train", "language", "--text", "text.txt", "--valid", "valid.txt", "--out", "run", *small]) == 0
    assert main(["eval", "run"]) == 0
    with open("valid.txt", "a") as file:
        file.write("four three\n")
    capsys.readouterr()
    assert main(["eval", "run"]) == 2
    message = f"{tmp_path / 'valid.txt'}: not the validation text that run was trained with"
    assert message in capsys.readouterr().err
    assert main(["train", "--resume", "run"]) == 2
    assert "run: the data differ from those that it was started with" in capsys.readouterr().err
    assert main(["eval", "run", "--text", "valid.txt"]) == 0
    options = json.loads(Path("run/run.json").read_text())
    del options["data"]  # a run.json that was altered is refused in the same words
    Path("run/run.json").write_text(json.dumps(options))
    assert main(["eval", "run"]) == main(["train", "--resume", "run"]) == 2
    told = capsys.readouterr().err
    assert message in told and "run: the data differ" in told
