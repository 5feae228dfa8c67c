"""The loop on a model of the smallest kind: points, saves, the best model, early stopping, stops, what is refused."""

import json
import math
import os
import signal
import time
from types import SimpleNamespace

import pytest

from hybrid.storage.checkpoint import CHECKPOINT
from hybrid.train.job import Job, Watched
from hybrid.train.loop import Best, JsonLines, LoopOptions, Saves, train
from hybrid.train.progress import SPENT
from hybrid.train.stop import Stopped
from hybrid.train.store import BEST
from tests.support.counting import Adding, Counting


def saved(folder, name=CHECKPOINT):
    return json.loads((folder / name / "counting.json").read_text())


def test_the_best_model_is_kept_and_the_run_goes_on(tmp_path):
    job = Adding(range(16), [3.0, 1.0, 2.0, 4.0])
    report = train(job, tmp_path, job.make())
    assert saved(tmp_path)["tick"] == 16 and saved(tmp_path, BEST)["tick"] == 8
    assert report["best"] == "error 1 at 8" and "stopped early" not in report
    assert (report["tick"], report["error"]) == (16, 4.0) and report["examples_per_second"] > 0
    assert [point["tick"] for point in report["curve"]] == [4, 8, 12, 16]


def test_a_signal_stops_between_two_ticks_and_the_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    class Signalled(Adding):
        def note(self, tick, facts):
            if facts["examples"] == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().note(tick, facts)

    job = Signalled(range(8))
    with pytest.raises(Stopped, match="stopped at tick 3; continue with: hybrid train --resume") as stopped:
        train(job, tmp_path / "stopped", job.make())
    assert stopped.value.signal == signal.SIGTERM and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    half = saved(tmp_path / "stopped")
    train(Adding(range(8)), tmp_path / "stopped", Counting(half["tick"], half["total"]), half["facts"])
    job = Adding(range(8))
    train(job, tmp_path / "whole", job.make())
    clocks = (*SPENT, "processor_seconds", "clocked")
    ends = [saved(tmp_path / name) for name in ("stopped", "whole")]
    for end in ends:
        for facts in (end["facts"]["progress"], *end["facts"]["progress"]["curve"]):
            for clock in clocks:
                facts.pop(clock, None)
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("failure", "torn"),
    [
        (ValueError("the feed broke"), None),
        (OSError(28, "full"), None),
        (FloatingPointError("the loss is nan"), "tick 7 failed midway"),
    ],
)
def test_what_fails_leaves_the_last_whole_tick_saved(tmp_path, failure, torn):
    class Broken(Adding):
        def ticks(self, model):
            for tick in model.run(self.feed):
                yield tick
                if model.tick == 6:
                    model.torn = torn
                    raise failure

    job = Broken(range(8), ticks_per_epoch=4)
    with pytest.raises(type(failure)) as raised:
        train(job, tmp_path, job.make(), options=LoopOptions(save_every=0))
    assert saved(tmp_path)["tick"] == (4 if torn else 6)
    assert torn or any("is in" in note or "no complete" in note for note in raised.value.__notes__)


def test_keeping_the_best_puts_no_save_off(tmp_path, monkeypatch):
    """A run goes on from its last checkpoint, not from its best one: the clock of saves is that of the former."""
    seconds, ticks = [0.0], []
    monkeypatch.setattr("hybrid.train.loop.time.monotonic", lambda: seconds[0])

    class Improving(Adding):
        def due(self, model):
            return model.tick  # every tick is better than the one before

        def note(self, tick, facts):
            seconds[0] += 1
            if (tmp_path / CHECKPOINT).exists():
                ticks.append(saved(tmp_path)["tick"])
            return super().note(tick, facts)

    job = Improving(range(12), range(100, 0, -1), ticks_per_epoch=12)
    train(job, tmp_path, job.make(), options=LoopOptions(save_every=5))
    assert sorted(set(ticks)) == [0, 5, 10] and saved(tmp_path, BEST)["tick"] == 12


@pytest.mark.parametrize("feed, expected", [(SimpleNamespace(ticks_per_epoch=4), [0, 4, 8]), (object(), [])])
def test_epochs_end_where_the_feed_says_how_many_ticks_they_have(feed, expected):
    assert [tick for tick in range(10) if Job.ends_epoch(SimpleNamespace(feed=feed), tick)] == expected


def taken(best, *values):
    return [best.take(tick, {"loss": 0.0, "error": value}) for tick, value in enumerate(values)]


@pytest.mark.parametrize("lowest", [True, False])
def test_the_best_is_the_lowest_or_the_highest_and_never_a_nan_or_a_point_without_the_figure(lowest):
    values = [3.0, 2.0, 2.5, 2.0, 1.0]
    best = Best(Watched("error", lowest), 0, facts := {})
    values = values if lowest else [-value for value in values]
    assert taken(best, *values) == [True, True, False, False, True]
    assert facts["best"] == {"tick": 4, "figure": "error", "value": values[4]} and not best.over
    best = Best(Watched("error", lowest), 1, facts := {})
    assert taken(best, math.nan) == [False] and facts["worse"] == 1
    assert taken(best, 4.0) == [True] and facts["worse"] == 0
    assert not best.take(5, {"loss": 1.0}) and not best.take(5, {"error": None}) and facts["worse"] == 0


def test_patience_counts_points_since_the_best_and_goes_on_after_a_save():
    best = Best(Watched("error"), 2, facts := {})
    taken(best, 1.0, 2.0)
    assert not best.over
    again = Best(Watched("error"), 2, json.loads(json.dumps(facts)))
    again.take(9, {"error": 1.5})
    assert again.over
    early = "no better one in the last 2 measurements"
    assert again.report() == {"best": "error 1 at 0", "stopped early": early}


@pytest.mark.parametrize("every", [0.5, 60])
def test_a_save_is_due_so_long_after_the_last(monkeypatch, every):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    saves = Saves(every)
    for _ in range(2):
        assert not saves.due()
        now += 0.9 * every
        assert not saves.due()
        now += 0.1 * every
        assert saves.due() and saves.due()
        saves.done()


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    lines = JsonLines(path := tmp_path / "curve.jsonl", ())
    lines.close()
    lines._file = open("/dev/full", "ab")  # every write to it finds no room
    for act in (lambda: lines.point({"tick": 1}), lines.close):
        with pytest.raises(OSError, match="No space left") as error:
            act()
        assert error.value.filename == str(path)


def test_points_of_ticks_that_were_lost_are_removed_and_others_on_the_disk_before_the_file_is_closed(
    tmp_path, monkeypatch
):
    path, synced = tmp_path / "curve.jsonl", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    first = JsonLines(path, ())
    for tick in range(5):
        first.point({"tick": tick})
    first.close()
    again = JsonLines(path, [{"tick": 0}, {"tick": 1}])
    again.point({"tick": 2})
    again.close()
    assert [json.loads(line)["tick"] for line in path.read_text().splitlines()] == [0, 1, 2]
    assert synced[-1] == path.stat().st_size and again._file.closed
