"""The language model as options describe it: how the text is cut or kept in files (hybrid/models/_text.py), its figures."""

import signal
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.models import language
from tests.support import small_runs
from tests.support.commands import refused, run_json


def test_a_readout_of_neighbours_tells_its_recall_beside_perplexity(tmp_path, capsys):
    """At points of the curve, where its index stands then, and in the report and `hybrid eval`, which build it."""
    (tmp_path / "some.txt").write_text("a b c d e f g h . b d f h a c e g .\n" * 40)
    text, out = str(tmp_path / "some.txt"), str(tmp_path / "run")
    more = (
        "--readout neighbours --min-count 1 --width 4 --hidden 4 --readout-width 4 --batch 64 --negatives 3 --epochs 1"
    )
    report = run_json(capsys, "train", "language", "--text", text, "--valid", text, "--out", out, *more.split())
    assert all(point["neighbours recall@10"] == 1 for point in report["curve"])
    assert min(report["neighbours queries/s"], report["exact queries/s"]) > 0 and report["readout"] == "neighbours"
    figures = run_json(capsys, "eval", out)
    assert figures["perplexity"] == pytest.approx(report["perplexity"]) and figures["neighbours recall@10"] == 1


@pytest.mark.parametrize(("readout", "many", "points"), [("sampled", 7, 2), ("sampled", 8, 8), ("tree", 7, 8)])
def test_a_sampled_softmax_of_many_words_is_measured_once_an_epoch(
    tmp_path, capsys, monkeypatch, readout, many, points
):
    monkeypatch.setattr(language, "MANY", many)
    (tmp_path / "some.txt").write_text("a b c d e f g\n" * 40)  # eight words, with <unk>
    files = ["--text", str(tmp_path / "some.txt"), "--out", str(tmp_path / "run"), "--min-count", "1"]
    sizes = "--width 4 --hidden 4 --readout-width 4 --batch 16 --epochs 2 --readout".split()
    assert len(run_json(capsys, "train", "language", *files, *sizes, readout)["curve"]) == points


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
        ("--stream ids", "--stream: needs --valid FILE"),
        ("--stream ids --valid none", "none: No such file"),
        ("--columns body --stream ids --valid valid.txt", "a text without columns, found --columns body"),
        ("--loss gbce", "--loss gbce: learns no probabilities, which perplexity measures"),
        ("--columns body", "a text without columns, found --columns body"),
    ],
)
def test_what_a_streamed_run_needs(texts, capsys, options, message):
    assert message in refused(capsys, "train", "language", "--text", "train.txt", *STREAMED, *options.split())
