"""hybrid/sweep/trial.py, child.py: real trials, one process each, and what ends them (hybrid.sweep.child)."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hybrid.storage.lock import LOCK
from hybrid.sweep.trial import Task, command, perform

OPTIONS = {"width": 4, "hidden": 8, "readout_width": 4, "batch": 64, "min_count": 1, "device": "cpu", "serial": True}
WAIT = 60.0  # seconds, of which a fraction is taken


@pytest.fixture
def task(tmp_path):
    (tmp_path / "book.txt").write_text("a b c d e f g h\n" * 100)
    options = OPTIONS | {"text": str(tmp_path / "book.txt"), "epochs": 1}
    return Task("language", options, {}, 1, str(tmp_path / "trial-001"), str(tmp_path / "stop"))


def under_way(task):
    """Wait until a trial learns; the number of its process."""
    ends = time.monotonic() + WAIT
    while time.monotonic() < ends:
        if os.path.exists(f"{task.folder}/curve.jsonl"):
            with open(f"{task.folder}/{LOCK}") as lock:
                return int(lock.read())
        time.sleep(0.05)
    raise AssertionError("the trial has not begun")


def long(task):
    return task._replace(options=task.options | {"epochs": 100_000})


def background(task):
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(perform(task)))
    thread.start()
    return thread, outcomes


def test_a_trial_is_trained_and_goes_on_further(task):
    report = perform(task).report
    assert report["options"]["threads"] == 1
    assert command(task)[:2] == ["train", f"--resume={task.folder}"]
    assert perform(task._replace(length={"epochs": 3})).report["tick"] == 3 * report["tick"]


def test_a_failure_has_its_cause_and_nothing_of_an_earlier_one(task):
    refused = perform(task._replace(options=task.options | {"text": "nowhere.txt"}))
    assert refused.report is None and "nowhere.txt" in refused.cause and not refused.cause.startswith("hybrid: error")
    diverged = perform(task._replace(options=task.options | {"rate": 1e30, "trunk_rate": 1e30}))
    assert diverged.report is None and "begin again with lower rates" in diverged.cause


def test_a_killed_trial_is_named_by_its_signal(task):
    thread, outcomes = background(long(task))
    os.kill(under_way(task), signal.SIGKILL)
    thread.join(WAIT)
    assert [(found.report, found.cause) for found in outcomes] == [(None, "ended by SIGKILL")]


def test_the_stop_file_ends_a_trial_which_then_goes_on(task, tmp_path):
    thread, outcomes = background(long(task))
    under_way(task)
    (tmp_path / "stop").touch()
    thread.join(WAIT)
    assert [(found.report, found.cause) for found in outcomes] == [(None, None)]
    assert "go on with: hybrid train --resume" in (tmp_path / "trial-001.log").read_text()


def test_a_trial_ends_with_the_process_that_asked_for_it(task):
    program = f"from hybrid.sweep.trial import *; perform(Task(*{tuple(long(task))!r}))"
    parent = subprocess.Popen([sys.executable, "-c", program])
    child = under_way(task)
    parent.kill()
    parent.wait()
    ends = time.monotonic() + WAIT
    while time.monotonic() < ends and running(child):
        time.sleep(0.05)
    assert not running(child)


def running(number):
    """Whether a process runs; one that has ended and that nobody waits for does not."""
    try:
        with open(f"/proc/{number}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
