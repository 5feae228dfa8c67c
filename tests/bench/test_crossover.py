"""The crossover: a wrong result ends its contest alone, turns are long enough to time."""

import time

from bench.harness.measure import Work
from bench.step import crossover


def test_a_wrong_result_ends_its_contest_alone(tmp_path, capsys):
    def wrong():
        raise AssertionError("the loss does not fall")

    one = {"contender": "tree", "params": {"batch": 1}, "value": 1.0, "spread": 0.0}
    todo = [crossover.Contest("first", 1, wrong), crossover.Contest("second", 1, lambda: [one])]
    path = tmp_path / "results.jsonl"
    assert crossover.hold(todo, str(path)) == ["first"]
    assert len(path.read_text().splitlines()) == 1
    assert "not timed: first: the loss does not fall" in capsys.readouterr().out


def test_a_turn_is_so_many_steps_that_it_lasts():
    calls = []
    step = Work("w", "ours", {}, 10, "examples/s", lambda: (calls.append(1), time.sleep(0.002)), lambda: None)
    long = crossover._long(step, turn=0.02)
    before, steps = len(calls), long.amount / 10
    long.run()
    assert before == 2, "one to check, one to time"
    assert 1 <= steps <= 10 and len(calls) - before == steps
