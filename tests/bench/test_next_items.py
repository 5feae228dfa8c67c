import numpy as np

from bench import next_items
from hybrid.feeds import ratings


def walks() -> ratings.Split:
    """Every user goes round in a circle of 12 items."""
    rows = [(u, (5 * u + t) % 12) for u in range(40) for t in range(8)]
    return ratings.split(ratings.histories(ratings.from_columns(*zip(*rows, strict=True))))


def test_baselines():
    found = {record["who"]: record["quality"] for record in next_items.baselines(walks())}
    assert set(found) == {"popularity", "EASE", "Markov counts", "count table"}
    certain = {"test recall@10": [1.0], "test ndcg@10": [1.0]}  # in a circle the next item is
    assert found["Markov counts"] == certain


def test_ease_is_the_least_squares_solution_without_a_diagonal():
    parts = walks()
    weights = next_items._ease(parts.train, 0.5)
    had = np.zeros((len(parts.train.users), 12))
    for user in range(len(had)):
        had[user, parts.train.item[parts.train.at[user] : parts.train.at[user + 1]]] = 1
    assert not np.diag(weights).any()
    gradient = had.T @ (had @ weights - had) + 0.5 * weights
    np.testing.assert_allclose(gradient - np.diag(np.diag(gradient)), 0, atol=1e-9)
