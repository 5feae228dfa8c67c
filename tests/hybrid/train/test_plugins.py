"""A readout and a trunk of another distribution, from the command line: each is one file (tests/support/toys)."""

import json

from hybrid.cli import main
from tests.support.commands import run_json
from tests.support.plugin import offered

SMALL = ["--width", "4", "--readout-width", "4", "--batch", "32", "--epochs", "2", "--threads", "1", "--min-count", "1"]


def test_a_readout_and_a_trunk_train_a_language_model(capsys, monkeypatch, tmp_path):
    for name, group in (("toy", "hybrid.readouts"), ("linear", "hybrid.trunks")):
        offered(monkeypatch, tmp_path, name, group)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("one two three four five\n" * 60)
    line = ["train", "language", "--text", "text.txt", "--readout", "toy", "--trunk", "linear", *SMALL, "--out", "run"]
    report = run_json(capsys, *line, "--start", "0.01")
    assert report["readout"] == "toy" and report["perplexity"] < 6
    options = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (options["readout"], options["trunk"], options["start"]) == ("toy", "linear", 0.01)
    assert "hidden" not in options and "tree" not in options
    assert main(["train", "--resume", "run", "--epochs", "3"]) == 0
    assert "perplexity" in capsys.readouterr().out
    assert main(["eval", "run"]) == 0
    capsys.readouterr()
    assert main([*line[:-1], "other", "--hidden", "4"]) == 2
    assert "--hidden: not used by `train language --readout toy --trunk linear`" in capsys.readouterr().err
