"""The command line as a user meets it: every command end to end, every refusal in one line with exit code 2."""

import os
import signal
import sys
from pathlib import Path

import pytest

from hybrid.cli import main
from hybrid.engine import Engine
from hybrid.formats import vectors
from hybrid.models._engine import EngineJob
from tests.support.commands import run_json
from tests.support.small_runs import write_data
from tests.support.trained import copied

SMALL = ["--epochs", "1", "--threads", "2"]
LANGUAGE = ["--trunk", "mlp", "--width", "8", "--hidden", "12", "--readout-width", "8", "--batch", "64", *SMALL]
WORDS = ["--width", "8", "--sample", "0", "--window", "1", "--rate", "0.1", "--rows-rate", "0.1", "--threads", "2"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text with a grammar: pairs of words that follow each other."""
    return str(write_data(tmp_path_factory.mktemp("data")) / "text.txt")


@pytest.mark.parametrize("readout", ["tree", "full", "sampled"])
def test_train_and_eval_language(capsys, tmp_path, text, readout):
    out = str(tmp_path / "run")
    few = ["--negatives", "20"] if readout == "sampled" else []
    texts = ["--text", text, "--test", text]
    report = run_json(capsys, "train", "language", *texts, "--readout", readout, "--out", out, *few, *LANGUAGE)
    assert report["perplexity"] < report["curve"][0]["perplexity"]
    assert report["tokens"] + report["valid_tokens"] == report["test_tokens"]
    files = "run.json vocabulary.json checkpoint report.json curve.png timeline.json".split()
    assert {path.name for path in Path(out).iterdir()} >= {*files}
    figures = run_json(capsys, "eval", out)
    assert figures["perplexity"] == pytest.approx(report["perplexity"], rel=1e-6)
    figures = run_json(capsys, "eval", out, "--text", text)
    assert 1 < figures["perplexity"] < 42
    assert figures["perplexity"] == pytest.approx(report["test_perplexity"], rel=1e-6)


@pytest.mark.parametrize(("model", "readout"), [("skipgram", "sampled"), ("cbow", "tree")])
def test_train_eval_and_export_words(capsys, tmp_path, text, model, readout):
    out = str(tmp_path / "run")
    command = ["train", "words", "--text", text, "--model", model, "--readout", readout, "--out", out]
    report = run_json(capsys, *command, *WORDS)
    assert report["loss"] < report["curve"][0]["loss"] - 0.1
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("noun1\tverb1\t9\nnoun1\tverb2\t1\nnoun2\tverb2\t8\nabsent\tnoun1\t3\n")
    figures = run_json(capsys, "eval", out, "--similarity", str(pairs))
    assert -1 <= figures["pairs"] <= 1 and figures["pairs_unknown"] == 0.25
    for name, flags, form in (
        ("v.txt", [], "text"),
        ("v.vec", ["--format", "binary"], "binary"),
        ("v.bin", [], "binary"),
    ):
        file = tmp_path / name
        assert main(["export", out, str(file), *flags]) == 0
        assert f"{form} -> {file}" in capsys.readouterr().out
        found = vectors.open_vectors(file)
        assert "noun1" in found.words and found.rows.shape == (40, 8)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train language", "--text: needed"),
        ("train", "which model"),
        ("train language --text {folder}/absent", "absent: No such file"),
        ("train factors --ratings {text}", "text.txt: no user column"),
        ("train factors --ratings {text} --text {text}", "--text: not used"),
        ("train language --text {text} --readout full --tree balanced", "--tree: not used"),
        ("train language --text {text} --rows-device abacus", 'device: found "abacus"'),
        ("train language --text {text} --device cuda:9", 'device: "cuda:9" cannot be used'),
        ("train language --text {text} --threads 100000", "--threads: found 100,000, expected at most"),
        ("train --resume {folder}/absent", "holds no run"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(capsys, tmp_path, text, line, message):
    out = ["--out", str(tmp_path / "out")] if line.startswith("train ") and "--resume" not in line else []
    assert main([*(word.format(folder=tmp_path, text=text) for word in line.split()), *out]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.startswith("hybrid: error: ") and printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_doctor_reports_and_says_whether_the_cpu_can_be_used(capsys):
    assert run_json(capsys, "doctor")["usable"]
    assert main(["doctor"]) == 0
    assert "GB/s" in capsys.readouterr().out


def kill(*arguments):
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_is_one_line_and_exit_code_130(capsys, tmp_path, text, monkeypatch):
    trained = copied("language_tree", tmp_path)
    monkeypatch.setattr(Engine, "evaluate", kill)
    capsys.readouterr()
    assert main(["eval", str(trained)]) == 130
    assert capsys.readouterr() == ("", "hybrid: interrupted\n")
    monkeypatch.setattr(EngineJob, "due", kill)
    assert main(["demo", "--text", text, "--out", str(tmp_path / "demo"), "--quiet", *SMALL]) == 130
    assert capsys.readouterr() == ("", "hybrid: stopped; a demo cannot be resumed, start it again\n")


def test_a_reader_who_has_had_enough_is_no_error(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        assert main(["data", "list"]) == 141
    assert capsys.readouterr().err == ""
