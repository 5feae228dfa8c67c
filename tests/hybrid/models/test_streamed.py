"""`hybrid train language|words --stream`: the runs of hybrid/models/_text.py whose text is kept as ids in files."""

import signal
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from tests.support import small_runs
from tests.support.commands import run_json

SMALL = ["--width", "8", "--epochs", "2", "--threads", "2"]
LANGUAGE = [*SMALL, "--hidden", "12", "--readout-width", "8", "--batch", "64", "--valid", "valid.txt"]


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
        (["--columns", "body", "--stream", "ids", "--valid", "none"], "none: No such file"),
    ],
)
def test_refusals(texts, capsys, options, message):
    assert main(["train", "language", "--text", "train.txt", *SMALL, *options]) == 2
    assert message in capsys.readouterr().err
