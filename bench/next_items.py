"""What next items are ranked by beside models: popularity, EASE, counts of what comes next or soon; see bench/tune.py."""

import statistics

import numpy as np

from bench import counted
from bench.measure import commit, environment
from hybrid.feeds.ratings import Histories, Split
from hybrid.judge import ranking


def baselines(parts: Split) -> list[dict]:
    """Popularity, EASE, Markov counts and a count table; settings are chosen on the validation items too."""
    fits: list[tuple] = [("popularity", {}, ranking.popularity(parts.train), ranking.popularity(parts.train))]
    soon = (counted.scores(parts.train, seen) for seen in (parts.train, parts.seen))
    fits.append(("count table", counted.Counts()._asdict(), *soon))
    for ridge in (100, 300, 1000, 3000, 10_000):
        weights = _ease(parts.train, ridge)
        for last in (3, 5, 10, 20, 1000):
            params = {"ridge": ridge, "history": last}
            fits.append(("EASE", params, *(_weighted(weights, seen, last) for seen in (parts.train, parts.seen))))
    for shrink in (0.001, 0.01, 0.1, 1.0):
        table = _markov(parts.train, shrink)
        fits.append(
            ("Markov counts", {"popularity": shrink}, *(_weighted(table, s, 1) for s in (parts.train, parts.seen)))
        )
    best: dict[str, tuple] = {}
    for who, params, valid, test in fits:
        value = ranking.figures(valid, parts.train, parts.valid)["ndcg@10"]
        if who not in best or value > best[who][0]:
            best[who] = value, params, test
    records = []
    for who, (_, params, test) in best.items():
        found = ranking.figures(test, parts.seen, parts.test)
        quality = {f"test {name}": [value] for name, value in found.items() if "@" in name}
        records.append(_record(who, params, quality))
        print(f"{who}  {_summary(quality)}  {params}", flush=True)
    return records


def _ease(train: Histories, ridge: float) -> np.ndarray:
    """Item to item weights (V, V) of a linear autoencoder without a diagonal (Steck 2019, arXiv:1905.03375)."""
    had = np.zeros((len(train.users), len(train.items)))
    had[np.repeat(np.arange(len(train.users)), np.diff(train.at)), train.item] = 1
    inverse = np.linalg.inv(had.T @ had + ridge * np.eye(had.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights


def _markov(train: Histories, shrink: float) -> np.ndarray:
    """How often item j came right after item i, (V, V), and a little of how often j came at all."""
    counts = np.zeros((len(train.items),) * 2)
    follows = np.ones(len(train.item), bool)
    follows[train.at[:-1][train.at[:-1] < len(follows)]] = False
    after = np.flatnonzero(follows)
    np.add.at(counts, (train.item[after - 1], train.item[after]), 1)
    popular = np.bincount(train.item, minlength=len(train.items))
    return counts + shrink * popular / popular.max()


def _weighted(weights: np.ndarray, seen: Histories, last: int) -> ranking.Scores:
    """Users -> the sum of the weights of their last items."""

    def scores(users):
        return np.stack(
            [weights[seen.item[max(seen.at[u], seen.at[u + 1] - last) : seen.at[u + 1]]].sum(0) for u in users]
        )

    return scores


def _summary(quality: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {statistics.mean(values):.3f}" for name, values in quality.items())


def _record(who: str, params: dict, quality: dict[str, list[float]]) -> dict:
    own = {"bench": "tune", "work": "factors.test", "who": who, "params": params, "data": "ml-100k", "seeds": []}
    return own | {"quality": quality, "threads": 1, "device": "cpu", "commit": commit(), "env": environment()}
