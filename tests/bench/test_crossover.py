"""The command on small sizes: every contender has a record whose section can be made; what is asked for is what runs."""

from types import SimpleNamespace

import pytest

from bench import crossover
from bench.__main__ import main
from bench.crossover_points import OURS, WORKS, Point, Size

SMALL = ["--quick", "--repeat", "1"]


def test_what_is_not_known_is_refused(capsys):
    assert main(["crossover", *SMALL, "--only", "forest"]) == 2
    assert "--only: found 'forest', expected some of output, step, full" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("only", "names"), [((), None), (("step",), ()), (("output", "tree"), ("tree",)), (("head",), ("head",))]
)
def test_who_is_chosen(only, names, monkeypatch):
    monkeypatch.setattr(crossover, "peer", lambda name: SimpleNamespace())
    found = crossover.chosen(Point("output", Size(1_000, 16, 32), 1), only)
    assert found == list(WORKS["output"] if names is None else names)


def test_without_pytorch_its_rivals_are_not_there(monkeypatch):
    monkeypatch.setattr(crossover, "peer", lambda name: None)
    assert crossover.chosen(Point("output", Size(1_000, 16, 32), 1), ()) == list(OURS)


def test_a_wrong_result_ends_its_contest_alone(tmp_path, capsys):
    def wrong():
        raise AssertionError("the loss does not fall")

    one = {"contender": "tree", "params": {"batch": 1}, "value": 1.0, "spread": 0.0}
    todo = [crossover.Contest("first", 1, wrong), crossover.Contest("second", 1, lambda: [one])]
    path = tmp_path / "results.jsonl"
    assert crossover.hold(todo, str(path)) == ["first"]
    assert len(path.read_text().splitlines()) == 1
    assert "not timed: first: the loss does not fall" in capsys.readouterr().out
