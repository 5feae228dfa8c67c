"""A turn is long enough to time, and holds whole steps; what is wrong is never ready."""

import time

import pytest

from bench.crossover import _long, works
from bench.crossover_points import Point, Size
from bench.measure import Work


def made(run, check=lambda: None):
    return Work("w", "ours", {}, 10, "examples/s", run, check)


def test_a_turn_is_so_many_steps_that_it_lasts():
    calls = []
    long = _long(made(lambda: (calls.append(1), time.sleep(0.002))), turn=0.02)
    before, steps = len(calls), long.amount / 10
    long.run()
    assert before == 2, "one to check, one to time"
    assert 1 <= steps <= 10 and len(calls) - before == steps


def test_a_long_step_is_a_turn():
    assert _long(made(lambda: time.sleep(0.002)), turn=0.0).amount == 10


def test_what_is_wrong_is_not_timed():
    def wrong():
        raise AssertionError("off by one")

    with pytest.raises(AssertionError, match="off by one"):
        _long(made(lambda: None, wrong), turn=0.0)


def test_records_say_who_contends_and_threads():
    point = Point("output", Size(1_000, 16, 32), 1)
    (tree,) = works(point, ["tree"], quick=True)
    assert (tree.work, tree.who, tree.threads) == ("crossover.output", "ours", 1)
    assert tree.params == {"contender": "tree", "classes": 1_000, "width": 16, "batch": 32}
    assert tree.more == {"contender": "tree"} and tree.amount % 32 == 0
