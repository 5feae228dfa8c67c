"""A readout, a trunk and a model of another distribution, from the command line: each is one file (tests/support/toys)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid
from tests.support.plugin import distribution

SMALL = ["--width", "4", "--readout-width", "4", "--batch", "32", "--epochs", "2", "--threads", "1", "--min-count", "1"]


@pytest.fixture
def hybrid_command(tmp_path):
    """Runs `hybrid` in a process of its own that finds the distributions; returns exit code, output, errors."""
    site = tmp_path / "site"
    site.mkdir()
    for name, group in (("toy", "hybrid.readouts"), ("linear", "hybrid.trunks"), ("line", "hybrid.models")):
        distribution(site, name, group)
    paths = [str(site), str(Path(hybrid.__file__).parents[1])]

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "hybrid.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_readout_and_a_trunk_train_a_language_model(hybrid_command, tmp_path):
    (tmp_path / "text.txt").write_text("one two three four five\n" * 60)
    line = ["train", "language", "--text", "text.txt", "--readout", "toy", "--trunk", "linear", *SMALL, "--out", "run"]
    code, printed, error = hybrid_command(*line, "--start", "0.01", "--json")
    assert code == 0, error
    report = json.loads(printed)
    assert report["readout"] == "toy" and report["perplexity"] < 6
    options = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (options["readout"], options["trunk"], options["start"]) == ("toy", "linear", 0.01)
    assert "hidden" not in options and "tree" not in options
    code, printed, error = hybrid_command("train", "--resume", "run", "--epochs", "3")
    assert code == 0 and "perplexity" in printed, error
    assert hybrid_command("eval", "run")[0] == 0
    code, _, error = hybrid_command(*line[:-1], "other", "--hidden", "4")
    assert code == 2 and "--hidden: not used by `train language --readout toy --trunk linear`" in error


def test_a_model_trains_resumes_and_is_measured(hybrid_command, tmp_path):
    (tmp_path / "points.csv").write_text("".join(f"{x / 10},{2 * x / 10 + 1}\n" for x in range(10)))
    code, printed, error = hybrid_command("train", "line", "--points", "points.csv", "--out", "run")
    assert code == 0 and "error" in printed, error
    code, _, error = hybrid_command("train", "--resume", "run", "--epochs", "200")
    assert code == 0, error
    figures = json.loads(hybrid_command("eval", "run", "--at", "2", "--json")[1])
    assert figures["slope"] == pytest.approx(2, abs=0.01) and figures["y"] == pytest.approx(5, abs=0.02)
