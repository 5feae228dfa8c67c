"""The clocks of a run, the points of its curve, and facts of checkpoints that are not those of a run."""

import time
from types import SimpleNamespace

import pytest

from hybrid.storage import checkpoint
from hybrid.train.job import Watched
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


JOBS = {
    "language": SimpleNamespace(unit="tick", drawn="perplexity", watched=Watched("perplexity")),
    "pvm": SimpleNamespace(unit="step", drawn="prediction", watched=None),
}
PVM = SimpleNamespace(config=SimpleNamespace(grids=[(2, 2), (1, 1)]))
GONE = object()


def told(kind: str) -> dict:
    """The facts of a run of this kind, with a point of its curve."""
    if kind == "pvm":
        point = {"step": 4, "seconds": 0.5, "error": [0.1, 0.2], "prediction": 0.1, "last_frame": 0.2}
        since = {"ticks": 0, "error": [0.0, 0.0], "pairs": 0, "prediction": 0.0, "last_frame": 0.0}
        return {"feed": {}, "progress": {"seconds": 0.5, "clocked": 3, "curve": [point], "since": since}}
    point = {"tick": 4, "seconds": 0.5, "examples": 9, "loss": 2.0, "perplexity": 8.0}
    best = {"tick": 4, "figure": "perplexity", "value": 8.0}
    progress = {"examples": 9, "seconds": 0.5, "curve": [point], "loss": 2.0, "best": best, "worse": 0}
    return {"feed": {}, "progress": progress}


def changed(what: dict, path: str, value) -> dict:
    """Facts in which one is another, or gone."""
    *outer, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    within = what
    for name in outer:
        within = within[name]
    if value is GONE:
        within.pop(last)
    else:
        within[last] = value
    return what


FOUND = {
    "language": [
        ("feed", GONE, "feed: found none, expected an object"),
        ("progress.curve", "x", "progress.curve: found 'x', expected a list"),
        ("progress.curve", "x" * 58, f"progress.curve: found '{'x' * 58}', expected"),
        ("progress.curve", "x" * 59, f"progress.curve: found '{'x' * 59}..., expected"),
        ("progress.curve", [{}], "progress.curve[0].seconds: found none, expected a number"),
        ("progress.curve.0.perplexity", {}, "progress.curve[0].perplexity: found an object of 0, expected a number"),
        ("progress.examples", 10**400, "progress.examples: found a number beyond 2^63, expected a number"),
        ("progress.loss", "low", "progress.loss: found 'low', expected a number or null"),
        ("progress.worse", 2, "progress.worse: found 2, expected at most 1, the points of the curve"),
        ("progress.best", [8.0], "progress.best: found a list of 1, expected an object"),
    ],
    "pvm": [
        ("progress.curve.0.error", [0.1], "progress.curve[0].error: found a list of 1, expected a list of 2 numbers"),
        ("progress.curve.0.prediction", GONE, "progress.curve[0].prediction: found none, expected a number or null"),
        ("progress.since.pairs", 0.5, "progress.since.pairs: found 0.5, expected a whole number of at least 0"),
    ],
}


@pytest.mark.parametrize("kind, path, value, said", [(kind, *one) for kind in FOUND for one in FOUND[kind]])
def test_facts_are_refused_by_name(tmp_path, kind, path, value, said):
    with pytest.raises(ValueError) as raised:
        check(changed(told(kind), path, value), JOBS[kind], kind, PVM, tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / checkpoint.LATEST}: {said}")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300 + len(str(tmp_path))
