"""The language model as options describe it: how the text is cut or kept in files (hybrid/models/_text.py), its figures."""

import signal
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.cli.options import read
from hybrid.models import language
from hybrid.train import runs
from hybrid.train.options import choose
from tests.support import small_runs
from tests.support.commands import refused, run_json


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
    """docs/results/measurements.md, "Python's documentation"; that a run has four epochs docs/runs.md says, too."""
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


STREAMED = ["--width", "8", "--epochs", "2", "--threads", "2"]
LANGUAGE = [*STREAMED, "--hidden", "12", "--readout-width", "8", "--batch", "64", "--valid", "valid.txt"]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, lines in (("train.txt", 150), ("valid.txt", 20)):
        starts = rng.integers(0, 30, lines)
        Path(name).write_text("\n".join(" ".join(f"w{(s + t) % 30}" for t in range(9)) for s in starts))
    return tmp_path


def test_a_streamed_run_that_was_stopped_goes_on_to_the_same_bytes(texts, capsys):
    command = ["train", "language", "--text", "train.txt", *LANGUAGE, "--stream", "ids"]
    run_json(capsys, *command, "--out", "whole")
    with pytest.MonkeyPatch.context() as patch:  # in the middle of a chunk of the second epoch
        small_runs.stop_at(patch, 34, lambda: signal.raise_signal(signal.SIGTERM))
        assert main([*command, "--out", "stopped"]) == 128 + signal.SIGTERM
    assert small_runs.ticks(Path("stopped")) < small_runs.ticks(Path("whole"))
    run_json(capsys, "train", "--resume", "stopped")
    assert small_runs.tensors(Path("stopped")) == small_runs.tensors(Path("whole"))
    assert len(list(Path("ids").iterdir())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stream", "ids"], "--stream: needs --valid FILE"),
        (["--stream", "ids", "--valid", "none"], "none: No such file"),
        (
            ["--columns", "body", "--stream", "ids", "--valid", "valid.txt"],
            "a text without columns, found --columns body",
        ),
        (["--columns", "body"], "a text without columns, found --columns body"),
    ],
)
def test_what_a_streamed_run_needs(texts, capsys, options, message):
    assert message in refused(capsys, "train", "language", "--text", "train.txt", *STREAMED, *options)
