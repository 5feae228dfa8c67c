"""The life of a training run: its clocks, its saves, its end."""

import time
from typing import NamedTuple

import pytest

from hybrid.train.loop import Job, Progress, _due


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


class Feed(NamedTuple):
    ticks_per_epoch: int


@pytest.mark.parametrize("evaluations", [1, 2, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1001])
def test_an_epoch_of_any_length_is_evaluated_so_often_and_at_its_end(size, evaluations):
    job = Job(Feed(size), Standing, dict, evaluations)
    for epoch in range(2):
        due = [tick for tick in range(epoch * size + 1, (epoch + 1) * size + 1) if _due(job, tick)]
        assert len(due) == min(evaluations, size) and due[-1] == (epoch + 1) * size
