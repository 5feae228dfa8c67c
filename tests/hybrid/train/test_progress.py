"""The clocks of a run, the points of its curve, and facts of checkpoints that are not those of a run."""

import math
import time
from types import SimpleNamespace

import pytest

from hybrid.storage import checkpoint
from hybrid.train.progress import SPENT, Progress, check


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


def told() -> dict:
    """The facts of a run, with a point of its curve."""
    point = {"tick": 4, "seconds": 0.5, "examples": 9, "loss": 2.0, "perplexity": 8.0}
    progress = {"examples": 9, "seconds": 0.5, "curve": [point], "loss": None, "worse": 0}
    return {"feed": {}, "progress": progress}


GONE = object()
CHANGES = [("feed", GONE), ("progress", "x"), ("progress.curve", GONE), ("progress.curve", "x"), ("progress.curve", {})]
CHANGES += [("progress.curve", [{}]), ("progress.curve.0.tick", GONE), ("progress.curve.0.seconds", math.nan)]
CHANGES += [("progress.examples", 10**400), ("progress.loss", "low"), ("progress.worse", [])]


@pytest.mark.parametrize("path, value", CHANGES)
def test_facts_that_are_not_of_a_run_are_refused_by_name(tmp_path, path, value):
    job, facts = SimpleNamespace(unit="tick"), told()
    check(facts, job, tmp_path)
    *outer, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    within = facts
    for name in outer:
        within = within[name]
    within[last] = value
    if value is GONE:
        del within[last]
    with pytest.raises(ValueError) as raised:
        check(facts, job, tmp_path)
    said = f"{tmp_path / checkpoint.LATEST}: expected a checkpoint of a run, as hybrid train writes it"
    assert str(raised.value) == said
