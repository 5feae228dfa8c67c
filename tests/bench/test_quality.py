"""Who is trained how often and for how long, what is kept and not done again, what tables and pictures make of it."""

import json
import math
import types

import pytest

from bench.quality import quality
from bench.quality.contender import Contender, Log, Problem, Run
from hybrid.train.job import Watched

PACE = 0.1  # epochs a second of the toy


def arguments(path, **other):
    given = {"json": path and str(path), "threads": 2, "quick": False, "only": ["toy"], "readouts": None}
    given |= {"tries": 3, "epochs": [1, 2], "seconds": [10, 40, 160, 640], "budget": None, "seeds": None}
    return types.SimpleNamespace(**given | other)


@pytest.fixture
def toy(monkeypatch):
    """A problem whose figure is the distance of the rate from 0.1 and that of the epochs from 4; what was trained."""
    done: list = []

    def train(settings, seed, epochs):
        done.append((settings["rate"], seed, epochs))
        figure = abs(math.log(settings["rate"] / 0.1)) + abs(epochs - 4) + 0.001 * seed

        def test():
            done.append("tested")
            return {"loss": figure + 1}

        return Run(lambda: {"loss": figure}, test, epochs, epochs / PACE, int(1000 * epochs), 12)

    space = {"rate": Log(0.01, 1)}
    contenders = {
        "searched": Contender(train, space, {"rate": 0.3}),
        "counted": Contender(train, {}, {"rate": 0.1}, once=True),
    }
    problem = Problem("a toy", Watched("loss"), contenders, epochs=(1,), seeds=(0, 1))
    monkeypatch.setattr(quality, "PROBLEMS", {"toy": "of this test"})
    monkeypatch.setattr(quality, "load", lambda name, arguments: problem)
    return done


def test_a_search_tests_nothing_and_a_record_is_not_trained_again(toy, tmp_path):
    path = tmp_path / "records.jsonl"
    assert quality.run(arguments(path, epochs=[1], seconds=[10])) == 0
    searched = 3 + 3  # each of three settings with seed 0, and all of them, as finalists, with seed 1
    assert "tested" not in toy[:searched] and toy.count("tested") == 2 + 2 + 1
    records = [json.loads(line) for line in path.read_text().splitlines()]
    works = [one["work"] for one in records]
    assert works == ["toy.search"] * 6 + ["toy.epochs"] * 2 + ["toy.seconds"] * 2 + ["toy.epochs"]
    assert all(not one["test"] for one in records[:6]) and all(one["test"] for one in records[6:])
    best = min(records[:6], key=lambda one: one["valid"]["loss"])
    assert {one["params"]["rate"] for one in records[6:10]} == {best["params"]["rate"]}
    del toy[:]
    assert quality.run(arguments(path, epochs=[1], seconds=[10])) == 0 and toy == []
    assert quality.run(arguments(path, epochs=[1, 2], seconds=[10])) == 0
    assert [epochs for _, _, epochs in toy[::2]] == [2, 2]


def test_seconds_become_epochs_and_longer_is_not_tried_once_it_is_worse(toy, capsys):
    assert quality.run(arguments(None, epochs=[1], readouts=["searched"])) == 0
    lengths = [one[2] for one in toy if one != "tested"][-6:]
    assert lengths == pytest.approx([1, 1, 4, 4, 16, 16])
    assert "worse after 160 s than before" in capsys.readouterr().out
