"""`hybrid sweep`, as a user types it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.cli import main

pytest.importorskip("optuna")

FILE = """
[sweep]
model = "language"
trials = 3

[fixed]
text = "book.txt"
epochs = 30
batch = 64
hidden = 8
readout-width = 4
device = "cpu"
threads = 1

[vary]
rate = {from = 0.01, to = 0.2, log = true}
width = [4, 8]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "book.txt").write_text("a b c d e f g h\n" * 100)
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FILE)


def swept(capsys, *arguments):
    assert main(["sweep", "s.toml", *arguments, "--quiet"]) == 0
    return capsys.readouterr().out


def said(capsys, *arguments):
    assert main(["sweep", "s.toml", *arguments, "--quiet"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("hybrid: error: ")
    return error.removeprefix("hybrid: error: ")


def begun(folder):
    """The command in another process, once its first trial has begun."""
    words = [sys.executable, "-m", "hybrid", "sweep", "s.toml", "--out", folder]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while not Path(folder, "trial-001/curve.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    return process


def test_a_stopped_sweep_goes_on_with_the_remaining_trials(capsys):
    whole = swept(capsys, "--out", "one")
    assert whole == Path("one/trials.md").read_text() and whole.count("\n") == 5
    assert whole.splitlines()[0].replace(" ", "") == "|trial|rate|width|perplexity|points|end|"
    assert swept(capsys, "--out", "same") == swept(capsys, "--out", "one") == whole

    sweep = begun("two")
    sweep.send_signal(signal.SIGINT)
    assert sweep.communicate(timeout=120)[1] and sweep.returncode == 130
    table = swept(capsys, "--out", "two")
    assert table.count("\n") == 5 and "trial-001" not in table and "trial-004" in table
    Path("s.toml").write_text(FILE.replace("trials = 3", "trials = 4"))
    assert swept(capsys, "--out", "two").count("\n") == 6
    Path("s.toml").write_text(FILE.replace("epochs = 30", "epochs = 31"))
    expected = "s.toml: differs from the file that the sweep in two was started with; restore it, or name another --out"
    assert said(capsys, "--out", "two") == expected


def test_two_processes_share_the_trials(capsys):
    assert swept(capsys, "--out", "warm")
    first = begun("two")
    swept(capsys, "--out", "two")
    assert first.communicate(timeout=120)[1] and first.returncode == 0
    assert Path("two/trials.md").read_text().count("\n") - 2 == len([*Path("two").glob("trial-*/")]) in (3, 4)


def test_a_trial_that_diverges_is_named_and_the_others_go_on(capsys):
    Path("s.toml").write_text(FILE.replace("{from = 0.01, to = 0.2, log = true}", "[0.05, 1e30]"))
    rows = swept(capsys).splitlines()
    assert "| 0.05 " in rows[2] and "complete" in rows[2]
    assert "| 1e+30 " in rows[-1] and "the rates may be too high" in rows[-1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\nwidth =", "\nwidht =", "s.toml: widht: not an option of hybrid train language"),
        ("epochs = 30", 'epochs = "many"', "s.toml: argument --epochs: "),
        ("trials = 3", "trials = 0", "[sweep]: found trials = 0, model = language, first = 1; expected trials = N, "),
        ("from = 0.01", "from = 0", "s.toml: [vary] rate: found {'from': 0, 'to': 0.2, 'log': True}, expected a list"),
        ("[4, 8]", "[]", "s.toml: [vary] width: found [], expected a list"),
        ("threads = 1", "width = 1", "s.toml: [vary]: expected at least one option, none of them in [fixed]"),
        ("[fixed]", "[more]", "s.toml: expected only the tables [sweep], [fixed] and [vary]"),
        ("book.txt", "none.txt", ": No such file or directory"),
    ],
)
def test_what_a_file_cannot_say(old, new, message, capsys):
    Path("s.toml").write_text(FILE.replace(old, new))
    assert message in said(capsys)
    assert not Path("runs").exists()


def test_folders_of_something_else(capsys):
    Path("mine").mkdir()
    Path("mine/notes").write_text("mine")
    assert said(capsys, "--out", "mine") == ("s.toml: --out: mine holds no sweep, but other files; name another --out")
    Path("mine/sweep.journal").write_text("{}\n")
    assert "mine/sweep.journal: not the journal of a sweep" in said(capsys, "--out", "mine")
