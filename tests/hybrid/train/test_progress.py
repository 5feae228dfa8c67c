"""The clocks of a run and the points of its curve."""

import time
from types import SimpleNamespace

import pytest

from hybrid.train.progress import SPENT, Progress


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when told."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


def test_each_second_is_on_one_clock(clock):
    progress = Progress()
    with progress.spending("starting_seconds"):
        clock.now += 50  # the first tick compiles kernels
        progress.note(8)
        for tick in (1, 2):
            clock.now += 2
            progress.note(8)
            with progress.spending("evaluation_seconds"):
                clock.now += 5
                progress.point("tick", tick, {"perplexity": 12.0})
                with progress.spending("saving_seconds"):
                    clock.now += 100
                clock.now += 1
    clock.now += 1000
    first, last = progress.facts["curve"]
    assert (first["seconds"], first["evaluation_seconds"], first["examples"]) == (2, 5, 16)
    assert (last["tick"], last["seconds"], last["evaluation_seconds"], last["perplexity"]) == (2, 4, 11, 12.0)
    assert [progress.facts[name] for name in SPENT] == [4, 12, 200, 50]
    assert progress.rate == 16 / 4  # of the examples on the clock: the first tick's are not
