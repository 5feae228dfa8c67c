"""The loop on a model of the smallest kind: points, saves, the best model, early stopping, stops, what is refused."""

import json
import os
import signal

import pytest

from hybrid.storage.checkpoint import CHECKPOINT
from hybrid.train.loop import check_same, train
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
    other = tmp_path / "other"
    train(job := Adding(range(16), [3.0, 1.0, 2.0, 4.0]), other, job.make(), keep_best=False)
    assert not (other / BEST).exists()


def test_a_signal_stops_between_two_ticks_and_the_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    class Signalled(Adding):
        def note(self, tick, facts):
            if facts["examples"] == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().note(tick, facts)

    job = Signalled(range(8))
    with pytest.raises(Stopped, match="stopped at tick 3; go on with: hybrid train --resume") as stopped:
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


@pytest.mark.parametrize("failure", [ValueError("the feed broke"), OSError(28, "full")])
def test_a_feed_that_fails_leaves_the_last_tick_saved(tmp_path, failure):
    class Broken(Adding):
        def ticks(self, model):
            for tick in model.run(self.feed):
                yield tick
                if model.tick == 3:
                    raise failure

    job = Broken(range(8))
    with pytest.raises(type(failure)) as raised:
        train(job, tmp_path, job.make(), save_every=0)
    assert saved(tmp_path)["tick"] == 3 and any(
        "stands in" in note or "no whole" in note for note in raised.value.__notes__
    )


def test_a_model_whose_tick_broke_off_is_not_saved_over_the_whole_one(tmp_path):
    class Torn(Adding):
        def ticks(self, model):
            for tick in model.run(self.feed):
                yield tick
                if model.tick == 6:
                    model.torn = "tick 7 failed half-way"
                    raise FloatingPointError("the loss is nan")

    job = Torn(range(8), ticks_per_epoch=4)
    with pytest.raises(FloatingPointError, match="the loss is nan"):
        train(job, tmp_path, job.make(), save_every=0)
    assert saved(tmp_path)["tick"] == 4


def test_keeping_the_best_puts_no_save_off(tmp_path, monkeypatch):
    """A run goes on from its last checkpoint, not from its best one: the clock of saves is that of the former."""
    seconds, ticks = [0.0], []
    monkeypatch.setattr("hybrid.train.options.time.monotonic", lambda: seconds[0])

    class Watched(Adding):
        def due(self, model):
            return model.tick  # every tick is better than the one before

        def note(self, tick, facts):
            seconds[0] += 1
            if (tmp_path / CHECKPOINT).exists():
                ticks.append(saved(tmp_path)["tick"])
            return super().note(tick, facts)

    job = Watched(range(12), range(100, 0, -1), ticks_per_epoch=12)
    train(job, tmp_path, job.make(), save_every=5)
    assert sorted(set(ticks)) == [0, 5, 10] and saved(tmp_path, BEST)["tick"] == 12


def test_a_longer_feed_goes_on_and_another_one_is_refused(tmp_path):
    described = {"numbers": "of a test", "epochs": 2}
    check_same(Adding(range(12)), described, 8, tmp_path)
    with pytest.raises(ValueError, match="feed: the data or its options differ"):
        check_same(Adding(range(12)), described | {"numbers": "others"}, 8, tmp_path)
    with pytest.raises(ValueError, match="--epochs: found 1, expected at least 2, which the run has begun or made"):
        check_same(Adding(range(4)), described, 5, tmp_path)
