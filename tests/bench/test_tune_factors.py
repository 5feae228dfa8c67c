from pathlib import Path

import numpy as np

from bench import tune_factors
from hybrid.feeds import ratings


def test_the_best_on_validation_is_the_only_one_that_is_tested():
    learned, tested = [], []

    def trial(settings, seed):
        learned.append((settings["rate"], seed))
        value = settings["rate"] + 0.001 * seed

        def test():
            tested.append((settings["rate"], seed))
            return {"test recall@10": 1 - value}

        return tune_factors.Trained({"valid ndcg@10": value}, test)

    settings = [{"rate": 0.01}, *tune_factors.drawn(4, (0.02, 0.1))]
    records = tune_factors.search("full", trial, settings, finalists=2, seeds=(0, 1, 2))
    assert len(records) == 6 and [len(next(iter(record["quality"].values()))) for record in records] == [
        3,
        3,
        1,
        1,
        1,
        3,
    ]
    best = max(one["rate"] for one in settings)
    assert tested == [(best, 0), (best, 1), (best, 2)] and len(learned) == 5 + 2 * 2
    assert records[-1]["work"] == "factors.test" and records[-1]["params"]["rate"] == best


def test_drawn_settings_are_the_same_in_every_call_and_within_the_space():
    settings = tune_factors.drawn(5, (0.002, 0.1))
    assert settings == tune_factors.drawn(7, (0.002, 0.1))[:5]
    others = tune_factors.drawn(5, (0.01, 0.2))
    assert [one | {"rate": 0} for one in settings] == [one | {"rate": 0} for one in others]
    for drawn in settings:
        assert all(drawn[name] in values for name, values in tune_factors.SPACE.items())
        rates = {"rate": (0.002, 0.1), **tune_factors.RATES}
        assert all(low <= drawn[name] <= high for name, (low, high) in rates.items())


def walks() -> ratings.Split:
    """Every user goes round in a circle of 12 items."""
    rows = [(u, (5 * u + t) % 12) for u in range(40) for t in range(8)]
    return ratings.split(ratings.histories(ratings.from_columns(*zip(*rows, strict=True))))


def test_baselines():
    found = {record["who"]: record["quality"] for record in tune_factors.baselines(walks())}
    assert set(found) == {"popularity", "EASE", "Markov counts"}
    certain = {"test recall@10": [1.0], "test ndcg@10": [1.0]}  # in a circle the next item is
    assert found["Markov counts"] == certain


def test_ease_is_the_least_squares_solution_without_a_diagonal():
    parts = walks()
    weights = tune_factors._ease(parts.train, 0.5)
    had = np.zeros((len(parts.train.users), 12))
    for user in range(len(had)):
        had[user, parts.train.item[parts.train.at[user] : parts.train.at[user + 1]]] = 1
    assert not np.diag(weights).any()
    gradient = had.T @ (had @ weights - had) + 0.5 * weights
    np.testing.assert_allclose(gradient - np.diag(np.diag(gradient)), 0, atol=1e-9)


def test_a_trial_trains_with_its_settings(tmp_path: Path):
    rows = (f"{u}\t{(5 * u + t) % 12}\t1\t{t}\n" for u in range(40) for t in range(8))
    (tmp_path / "u.data").write_text("".join(rows))
    trial = tune_factors._trial(tmp_path / "u.data", {"readout": "full"}, 1)
    settings = {"epochs": 2, "width": 4, "hidden": 4, "readout_width": 4, "batch": 64, "history": 2}
    trained = trial(settings, 0)
    assert set(trained.valid) == {"valid recall@10", "valid ndcg@10"}
    assert trained.test()["test users"] == 40
    assert trial(settings | {"rate": 1e38, "trunk_rate": 1e38}, 0).valid == {"valid ndcg@10": 0.0, "diverged": 1}
