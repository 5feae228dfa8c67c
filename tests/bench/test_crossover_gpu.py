"""Contests of `bench gpu` become records of the crossover: who contends there, at which size, by names that models know."""

from types import SimpleNamespace

import pytest

from bench import crossover_gpu
from bench.crossover_costs import Size, amounts

SIZE = Size(300, 128, 16)


def held(*names):
    """A contest with records of these."""
    records = [{"who": who, "work": "tree.step", "bench": "tree", "params": {}, "value": 1.0} for who in names]
    return SimpleNamespace(records=lambda repeat: records)


def test_records_are_of_contenders_and_no_others():
    made = crossover_gpu.Made(
        SIZE, "full", lambda: held("ours", "ours, a queue.run a step", "torch 2 linear_cross_entropy by 256 + SGD")
    )
    ours, theirs = crossover_gpu.records(made, repeat=1)
    assert (ours["contender"], ours["work"], ours["bench"]) == ("full", "crossover.output", "crossover")
    assert ours["params"] == {"contender": "full"} | SIZE._asdict()
    assert theirs["contender"] == "torch chunked" and theirs["params"] == SIZE._asdict()


@pytest.mark.parametrize("quick", [True, False])
def test_every_contest_is_of_a_contender_that_has_costs(quick):
    made = list(crossover_gpu.contests(SimpleNamespace(torch=None), quick, 1))
    assert {one.ours for one in made} == {
        "tree of mini-batches",
        "tree in order",
        "split tree",
        "tree of whole batches",
        "full",
    }
    for name in (*(one.ours for one in made), *crossover_gpu.BY_NAME.values()):
        assert amounts(name, "output", SIZE)["batches"] == 1
    assert max(one.size.classes for one in made if one.ours == "full") <= crossover_gpu.DENSE


def test_without_a_device_there_is_none(monkeypatch, capsys):
    monkeypatch.delenv("CUDASIM", raising=False)
    monkeypatch.setattr("gpu.available.unavailable", lambda: "as this test wants it")
    with crossover_gpu.machine() as found:
        assert found is None
    assert "no GPU to measure: as this test wants it" in capsys.readouterr().out
