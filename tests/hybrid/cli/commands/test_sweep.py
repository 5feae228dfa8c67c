"""`hybrid sweep`, as a user types it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.cli import main

FILE = """
[sweep]
model = "language"
strategy = "random"
trials = 2
seed = 3

[fixed]
text = "book.txt"
epochs = {epochs}
batch = 64
hidden = 8
readout-width = 4
device = "cpu"
serial = true

[vary]
rate = {{from = 0.01, to = 0.2, log = true}}
width = [4, 8]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "book.txt").write_text("a b c d e f g h\n" * 100)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swept(capsys, *arguments):
    assert main(["sweep", "s.toml", *arguments, "--json", "--quiet"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return {row["trial"]: (row["options"], row["figure"], row["value"]) for row in rows}


def test_two_workers_find_what_one_finds_and_a_stopped_sweep_goes_on(capsys):
    Path("s.toml").write_text(FILE.format(epochs=30))
    one = swept(capsys, "--workers", "1", "--threads", "1", "--out", "one")
    assert len(one) == 2 and {figure for _, figure, _ in one.values()} == {"perplexity"}

    words = [sys.executable, "-m", "hybrid.cli", "sweep", "s.toml", "--workers", "2", "--threads", "2", "--out", "two"]
    sweep = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    ends = time.monotonic() + 60
    while not Path("two/trial-001/curve.jsonl").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    sweep.send_signal(signal.SIGINT)
    error = sweep.communicate(timeout=60)[1]
    assert sweep.returncode == 130, error
    assert error.splitlines()[-1] == "hybrid: stopped; the same command goes on"
    assert not Path("two/trials.jsonl").exists() or len(Path("two/trials.jsonl").read_text().splitlines()) < 2
    assert swept(capsys, "--workers", "2", "--threads", "2", "--out", "two") == one
    assert "resume" in Path("two/trial-001.log").read_text()


def test_table_best_and_errors(capsys):
    Path("s.toml").write_text(
        FILE.format(epochs=1)
        .replace('"random"\ntrials = 2\nseed = 3', '"grid"')
        .replace("{from = 0.01, to = 0.2, log = true}", "[0.05, 1e30]")
        .replace("[4, 8]", "[4]")
    )
    assert main(["sweep", "s.toml", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert Path("runs/s/trials.md").read_text() in out
    assert "best: trial 1, rate 0.05, width 4: perplexity " in out
    assert "trial 2" not in out and "begin again with lower rates" in out
    Path("s.toml").write_text(FILE.format(epochs=1).replace("\nwidth", "\nwidht"))
    assert main(["sweep", "s.toml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("hybrid: error: s.toml: [vary] widht: not an option") and error.count("\n") == 1
    assert main(["sweep", "none.toml"]) == 2
    assert capsys.readouterr().err == "hybrid: error: none.toml: No such file or directory\n"


def test_a_system_without_some_signals_sweeps_too():
    program = "import signal; del signal.SIGUSR1, signal.SIGUSR2; import hybrid.cli.commands.sweep"  # as Windows
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
