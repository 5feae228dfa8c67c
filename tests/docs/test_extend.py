"""The model that docs/extend.md adds is trained from the command line, as one of another distribution."""

import json
from pathlib import Path

import pytest

from hybrid.cli import main
from tests.support.plugin import offered

from .pages import ROOT, blocks


@pytest.fixture
def sums(monkeypatch, tmp_path):
    """An entry point of the group "hybrid.models" for the page's feed and model."""
    shown = [block.code for block in blocks(ROOT / "docs" / "extend.md") if block.language == "python"]
    feed, model = shown[0].split("feed = Sums()")[0], next(code for code in shown if "class SumsJob" in code)
    monkeypatch.chdir(tmp_path)
    source = model.replace("import dataclasses\n", f"import dataclasses\n{feed}")
    offered(monkeypatch, tmp_path, "sums", "hybrid.models", source)


def test_it_is_trained_resumed_and_measured(sums, capsys):
    assert main(["train", "sums", "--epochs", "2", "--patience", "5"]) == 0, capsys.readouterr().err
    report = json.loads(Path("runs/sums/report.json").read_text())
    assert report["loss"] < 2.0 and Path("runs/sums/best").is_dir()  # of 19 sums, nearly 2.8 where nothing is known
    assert main(["train", "--resume", "runs/sums", "--epochs", "3"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["eval", "runs/sums", "--json"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["loss"] < 2.0


def test_its_options_are_its_own(sums, capsys):
    with pytest.raises(SystemExit):
        main(["train", "sums", "--help"])
    told = capsys.readouterr().out
    assert "--width" in told and "Adding two digits." in told and "--text" not in told
    assert main(["train", "sums", "--readout", "tree"]) == 2
