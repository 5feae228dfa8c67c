"""The search for defaults: what is drawn, who learns with more seeds, who is tested, what is written down."""

import json
import math
import types

import pytest

from bench import draws, report, tune
from bench.draws import Among, By, Log
from bench.tuning import PROBLEMS, Problem, Trained
from hybrid.train.job import Watched

SPACE = {"optimiser": Among(("sgd", "adam")), "rate": By("optimiser", {"sgd": Log(0.02, 0.5), "adam": Log(1e-4, 0.01)})}


def problem(tested, lowest=False):
    """A model whose figure is its rate and a little of the seed; a rate above 0.4 diverges."""

    def trial(readout, settings, seed):
        value = settings["rate"] + 0.001 * seed

        def test():
            tested.append((settings["rate"], seed))
            return {"test": 1 - value}

        return Trained({"valid": value} if value < 0.4 else {}, test if value < 0.4 else dict)

    return Problem("nothing", {"tree": {}}, lambda readout: SPACE, Watched("valid", lowest), trial)


@pytest.mark.parametrize("lowest", [False, True])
def test_the_best_on_validation_is_the_only_one_that_is_tested(lowest):
    tested: list = []
    settings = [{"rate": rate} for rate in (0.1, 0.3, 0.5, 0.2, 0.05)]
    budget = tune.Budget(5, math.inf, finalists=2)
    records = list(tune.search("toy", problem(tested, lowest), "tree", settings, budget))
    assert [record["work"] for record in records] == [*["toy.search"] * 5, *["toy.tuned"] * 2, "toy.test"]
    assert [len(record["seeds"]) for record in records] == [1] * 5 + [3] * 3
    best = 0.05 if lowest else 0.3
    assert tested == [(best, 0), (best, 1), (best, 2)] and records[-1]["params"] == {"rate": best}
    assert records[2]["diverged"] == 1 and records[2]["quality"] == {}
    assert records[-1]["quality"] == {"test": pytest.approx([1 - best - 0.001 * seed for seed in range(3)])}
    assert records[-1]["budget"]["tries"] == 5 and records[-1]["budget"]["drawn"] == draws.DRAWN


def test_after_its_seconds_a_search_begins_no_other_settings():
    settings = [{"rate": 0.1}, {"rate": 0.2}]
    records = list(tune.search("toy", problem([]), "tree", settings, tune.Budget(2, 0.0)))
    assert [record["work"] for record in records] == ["toy.search", "toy.tuned", "toy.test"]


def test_drawn_settings_are_the_same_in_every_call_and_every_space_and_lie_within():
    found = [draws.drawn(SPACE, number) for number in range(200)]
    assert found == [draws.drawn(SPACE, number) for number in range(200)]
    wider = [draws.drawn({"more": Among((1, 2, 3)), **SPACE}, number) for number in range(200)]
    assert [{name: one[name] for name in SPACE} for one in wider] == found
    limits = {"sgd": (0.02, 0.5), "adam": (1e-4, 0.01)}
    for one in found:
        low, high = limits[one["optimiser"]]
        assert low <= one["rate"] <= high
    assert {one["optimiser"] for one in found} == set(limits)


def test_defaults_come_first_and_settings_that_a_readout_lacks_are_left_out():
    space = {"rate": Log(0.01, 0.1), "negatives": Among((5, 6))}
    tree, sampled = (tune.candidates("language", {"readout": kind}, space, 3) for kind in ("tree", "sampled"))
    assert [set(one) for one in tree] == [{"rate"}] * 3
    assert [set(one) for one in sampled] == [{"rate", "negatives"}] * 3
    assert [one["rate"] for one in tree[1:]] == [one["rate"] for one in sampled[1:]]


def arguments(**other):
    return types.SimpleNamespace(**{"quick": True, "threads": 2, "tries": 2, "seconds": None, "only": None} | other)


@pytest.fixture
def ratings(tmp_path, monkeypatch):
    """Users who go round in a circle of 12 items, where HYBRID_DATA has MovieLens-100k."""
    rows = (f"{u}\t{(5 * u + t) % 12}\t1\t{t}\n" for u in range(40) for t in range(8))
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text("".join(rows))
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))


def test_a_search_of_factors_is_recorded_and_shown(tmp_path, ratings):
    file = tmp_path / "records.jsonl"
    assert tune.run(arguments(only=["factors"], tries=1, json=str(file))) == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    tested = [record for record in records if record["work"] == "factors.test"]
    assert [record["who"] for record in tested[:4]] == ["tree, balanced", "tree, huffman", "full", "sampled"]
    assert all(0 <= record["quality"]["test ndcg@10"][0] <= 1 for record in tested)
    assert {"popularity", "EASE", "Markov counts", "count table"} <= {record["who"] for record in tested[4:]}
    assert "### factors.test" in report.tables(report.read([str(file)]))


def test_a_model_without_its_data_is_left_out_and_an_unknown_one_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    assert PROBLEMS["factors"](arguments()) is None is PROBLEMS["words"](arguments())
    assert "HYBRID_DATA names the folder that holds ml-100k/u.data" in capsys.readouterr().out
    assert tune.run(arguments(only=["towers"], json=None)) == 2
    assert "--only: found 'towers', expected one of language, factors, words" in capsys.readouterr().out


def test_a_trial_that_diverges_has_no_figure(ratings):
    found = PROBLEMS["factors"](arguments())
    assert found is not None
    trained = found.trial("full", {"rate": 1e38, "trunk_rate": 1e38}, 0)
    assert trained.valid == {} == trained.test()
