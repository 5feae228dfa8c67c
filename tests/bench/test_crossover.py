"""The crossover: the plan stays within its time, contests are of who is asked for, turns are long enough to time."""

import time
from types import SimpleNamespace

import pytest

from bench.harness.measure import Work
from bench.report.sections.crossover import Size
from bench.step import crossover
from bench.step.crossover import OURS, SHARE, WORKS, Point, _long, held, left_out, shared_out


@pytest.mark.parametrize(
    ("only", "names"), [((), None), (("step",), ()), (("output", "tree"), ("tree",)), (("head",), ("head",))]
)
def test_who_is_chosen(only, names, monkeypatch):
    monkeypatch.setattr(crossover, "peer", lambda name: SimpleNamespace())
    found = crossover.chosen(Point("output", Size(1_000, 16, 32), 1), only)
    assert found == list(WORKS["output"] if names is None else names)
    monkeypatch.setattr(crossover, "peer", lambda name: None)
    assert crossover.chosen(Point("output", Size(1_000, 16, 32), 1), ()) == list(OURS), "without PyTorch"


def test_a_wrong_result_ends_its_contest_alone(tmp_path, capsys):
    def wrong():
        raise AssertionError("the loss does not fall")

    one = {"contender": "tree", "params": {"batch": 1}, "value": 1.0, "spread": 0.0}
    todo = [crossover.Contest("first", 1, wrong), crossover.Contest("second", 1, lambda: [one])]
    path = tmp_path / "results.jsonl"
    assert crossover.hold(todo, str(path)) == ["first"]
    assert len(path.read_text().splitlines()) == 1
    assert "not timed: first: the loss does not fall" in capsys.readouterr().out


# The plan

MACHINE = 25e9  # bytes


@pytest.mark.parametrize(
    ("contender", "work", "size", "threads", "said"),
    [
        ("full", "output", Size(1_000_000, 128, 1024), 2, "a step is taken to last"),
        ("tree overlapped", "step", Size(1_000, 128, 64), 1, "nothing to overlap"),
        ("tree", "output", Size(10_000_000, 512, 64), 2, "it takes 20.9 GB, of 25"),
    ],
)
def test_who_is_left_out_has_a_reason(contender, work, size, threads, said):
    assert said in left_out(contender, Point(work, size, threads), MACHINE)


def test_rivals_who_do_not_fit_beside_each_other_are_in_contests_of_their_own():
    size = Size(1_000_000, 512, 64)
    names = WORKS["output"]
    found = shared_out(Point("output", size, 2), names, MACHINE)
    assert [one for contest in found for one in contest] == list(names) and len(found) > 1
    for contest in found:
        assert sum(held(one, Point("output", size, 2)) for one in contest) <= SHARE * MACHINE or len(contest) == 1
    assert shared_out(Point("output", Size(1_000, 128, 64), 2), names, MACHINE) == [list(names)]


# Turns


def made(run, check=lambda: None):
    return Work("w", "ours", {}, 10, "examples/s", run, check)


def test_a_turn_is_so_many_steps_that_it_lasts():
    calls = []
    long = _long(made(lambda: (calls.append(1), time.sleep(0.002))), turn=0.02)
    before, steps = len(calls), long.amount / 10
    long.run()
    assert before == 2, "one to check, one to time"
    assert 1 <= steps <= 10 and len(calls) - before == steps


def test_what_is_wrong_is_not_timed():
    def wrong():
        raise AssertionError("off by one")

    with pytest.raises(AssertionError, match="off by one"):
        _long(made(lambda: None, wrong), turn=0.0)
