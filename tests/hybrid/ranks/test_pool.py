"""Sweeps over ranks: rank 0 hands out trials, the others train them."""

import json
import os
import re
import signal
import sys
import time

import pytest

from tests.support.plugin import offered_to_children
from tests.support.ranks import ended, started

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

FILE = """
[sweep]
model = "parted"
strategy = "grid"

[fixed]
device = "cpu"
pause = {pause}

[vary]
ill = ["", "raise 0 3"]
epochs = [1, 2]
"""


@pytest.fixture(autouse=True)
def offered(tmp_path, monkeypatch):
    offered_to_children(monkeypatch, tmp_path / "offered", "parted", "hybrid.models")


def sweeping(tmp_path, *more, ranks, pause=0):
    (tmp_path / "s.toml").write_text(FILE.format(pause=pause))
    words = ["sweep", str(tmp_path / "s.toml"), "--threads", "1", "--json", *more]
    return started(*words, "--out", str(tmp_path / "out"), ranks=ranks, module="hybrid.cli")


def found(out):
    return {(row["options"]["epochs"], row["options"]["ill"]): (row["value"], row["cause"]) for row in json.loads(out)}


def test_other_ranks_train_trials_and_a_failed_one_is_reported(tmp_path):
    code, out, err = ended(sweeping(tmp_path, ranks=3), limit=240.0)
    assert code == 0, err
    values = found(out)
    assert values[2, ""][0] < values[1, ""][0]
    assert {values[epochs, "raise 0 3"] for epochs in (1, 2)} == {(None, "RuntimeError: boom")}
    assert len(re.findall(r"^hybrid: trial \d .* failed: RuntimeError: boom$", err, re.MULTILINE)) == 2


def under_way(tmp_path, running):
    """Wait until a trial learns."""
    while not list(tmp_path.glob("out/trial-*/checkpoint/checkpoint.json")):
        assert running.poll() is None
        time.sleep(0.05)


def test_a_signal_ends_all_and_the_same_command_goes_on(tmp_path):
    running = sweeping(tmp_path, ranks=3, pause=100)
    under_way(tmp_path, running)
    running.send_signal(signal.SIGTERM)
    code, out, err = ended(running)
    assert code == 128 + signal.SIGTERM and out == ""
    assert err.count("hybrid: stopped; the same command goes on") == 1
    said = [path.read_text() for path in tmp_path.glob("out/*.log")]
    assert any("hybrid: stopped at tick" in text for text in said)
    code, out, err = ended(sweeping(tmp_path, ranks=2, pause=100), limit=240.0)
    assert code == 0, err
    assert len(found(out)) == 4


def test_a_killed_worker_ends_all_and_its_trial(tmp_path):
    running = sweeping(tmp_path, ranks=2, pause=100)
    under_way(tmp_path, running)
    killed = int(re.search(r"\d+", (tmp_path / "out" / "trial-001" / ".hybrid.lock").read_text())[0])
    with open(f"/proc/{killed}/stat") as stat:
        worker = int(stat.read().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    code, out, _ = ended(running)
    assert code == signal.SIGKILL and "Killed (signal 9)" in out


def test_the_number_of_workers_is_that_of_ranks(tmp_path):
    code, _, err = ended(sweeping(tmp_path, "--workers", "2", ranks=2), limit=60.0)
    assert code == 2 and err.count("\n") == 1
    assert err.endswith("hybrid: error: --workers: on 2 ranks there are 1; leave it out\n")
