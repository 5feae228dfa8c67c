"""Which point of a curve is the best, and when to stop waiting for a better one."""

import json
import math
from types import SimpleNamespace

import pytest

from hybrid.train.job import Job, Watched
from hybrid.train.loop import Best


@pytest.mark.parametrize("feed, expected", [(SimpleNamespace(ticks_per_epoch=4), [0, 4, 8]), (object(), [])])
def test_epochs_end_where_the_feed_says_how_many_ticks_they_have(feed, expected):
    job = SimpleNamespace(feed=feed)
    assert [tick for tick in range(10) if Job.ends_epoch(job, tick)] == expected


def taken(best, *values):
    return [best.take(tick, {"loss": 0.0, "error": value}) for tick, value in enumerate(values)]


@pytest.mark.parametrize("lowest", [True, False])
def test_the_best_is_the_lowest_or_the_highest(lowest):
    values = [3.0, 2.0, 2.5, 2.0, 1.0]
    best = Best(Watched("error", lowest), 0, facts := {})
    values = values if lowest else [-value for value in values]
    assert taken(best, *values) == [True, True, False, False, True]
    assert facts["best"] == {"tick": 4, "figure": "error", "value": values[4]} and not best.over


def test_patience_counts_points_since_the_best_and_goes_on_after_a_save():
    best = Best(Watched("error"), 2, facts := {})
    taken(best, 1.0, 2.0)
    assert not best.over
    again = Best(Watched("error"), 2, json.loads(json.dumps(facts)))
    again.take(9, {"error": 1.5})
    assert again.over
    assert again.said() == {"best": "error 1 at 0", "stopped early": "nothing better in the last 2 points of the curve"}


def test_a_nan_is_never_the_best_and_a_point_without_the_figure_does_not_count():
    best = Best(Watched("error"), 1, facts := {})
    assert taken(best, math.nan) == [False] and facts["worse"] == 1
    assert taken(best, 4.0) == [True] and facts["worse"] == 0
    assert not best.take(5, {"loss": 1.0}) and not best.take(5, {"error": None}) and facts["worse"] == 0


def test_a_report_has_the_figures_of_the_last_point():
    curve = [{"tick": 1, "loss": 3.0}, {"tick": 2, "loss": 2.0}]
    found = Job.report(SimpleNamespace(), None, {"curve": curve}, 5.0)
    assert (found["tick"], found["loss"], found["examples_per_second"], found["curve"]) == (2, 2.0, 5.0, curve)
