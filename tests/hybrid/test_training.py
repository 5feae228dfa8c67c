"""The life of a training run: its clocks, its saves, its end."""

import time

import pytest

from hybrid.training import Progress


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


class Standing:
    tick = 7


def test_training_and_evaluation_have_a_clock_each(monkeypatch):
    clock = Clock(monkeypatch)
    progress = Progress(None)

    def evaluate(engine):
        clock.now += 5
        return {"perplexity": 12.0}

    for _ in range(2):
        progress.go_on()
        clock.now += 2
        progress.pause()
        clock.now += 100  # a save
        assert progress.evaluated(evaluate, Standing()) == {"perplexity": 12.0}
    first, last = progress.facts["curve"]
    assert (first["seconds"], first["evaluation_seconds"]) == (2, 5)
    assert (last["tick"], last["seconds"], last["evaluation_seconds"], last["perplexity"]) == (7, 4, 10, 12.0)
    assert Progress(progress.facts).facts["evaluation_seconds"] == 10


def test_a_run_of_an_earlier_version_has_no_clock_of_evaluation_yet():
    assert Progress({"seconds": 3.0, "examples": 9, "loss": 1.0, "curve": []}).facts["evaluation_seconds"] == 0
    assert Progress({"seconds": 3.0}).facts["seconds"] == pytest.approx(3.0)
