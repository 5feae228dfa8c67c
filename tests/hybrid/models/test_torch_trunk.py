"""A module of PyTorch under a model of the command line: trained, evaluated, gone on with."""

import json

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.cli import main

PROGRAM = """
import torch

class Net(torch.nn.Module):
    def __init__(self, context, width, outputs):
        super().__init__()
        self.context, self.width = context, width
        self.recurrent, self.drop = torch.nn.GRU(width, outputs, batch_first=True), torch.nn.Dropout(0.1)

    def forward(self, x):
        hidden, _ = self.recurrent(x.view(len(x), self.context, self.width))
        return self.drop(hidden[:, -1])

def make(inputs, outputs, context, width):
    assert inputs == context * width
    return Net(context, width, outputs)
"""
SMALL = "--context 2 --width 6 --readout-width 6 --batch 32 --threads 1 --min-count 1".split()


@pytest.fixture
def begin(tmp_path, capsys):
    """Train on a small text under a function of the program above; the report, and the command itself."""
    (tmp_path / "net.py").write_text(PROGRAM)
    (tmp_path / "text.txt").write_text("one two three four five\n" * 60)
    line = ["train", "language", "--text", str(tmp_path / "text.txt"), "--trunk", "torch", *SMALL]

    def run(*more, function="make"):
        given = ["--module", f"{tmp_path / 'net.py'}:{function}", "--out", str(tmp_path / "run"), "--json", *more]
        code = main([*line, *given])
        out, err = capsys.readouterr()
        return json.loads(out) if code == 0 else err

    return run


def test_a_run_is_trained_evaluated_and_gone_on_with(begin, tmp_path, capsys, monkeypatch):
    report = begin("--epochs", "3")
    assert report["perplexity"] < report["curve"][0]["perplexity"]
    run = str(tmp_path / "run")
    assert main(["eval", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] == pytest.approx(report["perplexity"])
    (tmp_path / "net.py").write_text(PROGRAM + "\n# a remark\n")
    assert main(["eval", run]) == 2 and "expected one that you have named" in capsys.readouterr().err
    monkeypatch.setenv("HYBRID_MODULES", str(tmp_path / "net.py"))
    assert main(["train", "--resume", run, "--epochs", "4", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["perplexity"] < report["perplexity"] and "net.py has changed since the run was saved" in err
    (tmp_path / "net.py").unlink()
    assert main(["eval", run]) == 2 and "net.py" in capsys.readouterr().err


def test_a_run_of_somebody_else_does_not_run_the_program_that_it_names(begin, tmp_path, capsys):
    begin("--epochs", "1")
    facts = tmp_path / "run" / "run.json"
    stranger = tmp_path / "stranger.py"
    stranger.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{PROGRAM}")
    facts.write_text(facts.read_text().replace("net.py", "stranger.py"))
    for command in (["eval"], ["train", "--resume"]):
        assert main([*command, str(tmp_path / "run")]) == 2
        assert f"{stranger}: found a program that the run names" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_what_is_missing_is_told_in_one_line(begin, tmp_path, capsys):
    assert "it has no function other" in begin(function="other")
    line = ["train", "language", "--text", str(tmp_path / "text.txt"), "--trunk", "torch", "--out", str(tmp_path / "b")]
    assert main(line) == 2
    assert "--module: needed by --trunk torch, found none; expected FILE.py:FUNCTION" in capsys.readouterr().err
