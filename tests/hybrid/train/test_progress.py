"""The clocks of a run and the points of its curve."""

import time

import pytest

from hybrid.train.progress import Progress


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def test_training_and_evaluation_have_a_clock_each(monkeypatch):
    clock = Clock(monkeypatch)
    progress = Progress()
    clock.now += 50  # the first tick compiles kernels
    progress.note(8)
    for tick in (1, 2):
        clock.now += 2
        progress.note(8)
        progress.pause()
        with progress.evaluating():
            clock.now += 5
        progress.point("tick", tick, {"perplexity": 12.0})
        clock.now += 100  # a save
        progress.go_on()
    first, last = progress.facts["curve"]
    assert (first["seconds"], first["evaluation_seconds"], first["examples"]) == (2, 5, 16)
    assert (last["tick"], last["seconds"], last["evaluation_seconds"], last["perplexity"]) == (2, 4, 10, 12.0)
    assert progress.rate == 16 / 4  # of the examples on the clock: the first tick's are not
    assert Progress(progress.facts).facts["evaluation_seconds"] == 10


def test_a_start_leaves_its_first_tick_off_the_clock_again(monkeypatch):
    clock = Clock(monkeypatch)
    progress = Progress({"seconds": 4.0, "examples": 16, "clocked": 8, "curve": []})
    progress.pause()  # a save before the first tick: no clock runs yet
    clock.now += 30
    progress.go_on()
    progress.note(8)
    clock.now += 1
    progress.note(8)
    progress.pause()
    assert (progress.facts["seconds"], progress.facts["clocked"], progress.facts["examples"]) == (5, 16, 32)


def test_a_run_of_an_earlier_version_has_no_clock_of_evaluation_yet():
    facts = Progress({"seconds": 3.0, "examples": 9, "loss": 1.0, "curve": []}).facts
    assert facts["evaluation_seconds"] == 0 and facts["clocked"] == 9
    assert Progress({"seconds": 3.0}).facts["seconds"] == pytest.approx(3.0)
