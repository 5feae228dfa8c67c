"""Settings of `train factors` searched on MovieLens-100k, the same budget for every readout; tested beside baselines."""

import math
import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.measure import append, commit, environment
from hybrid.feeds.ratings import Histories, Split, histories, load, split
from hybrid.judge import ranking
from hybrid.models import factors
from hybrid.train.options import choose

READOUTS: dict[str, dict] = {
    "tree, balanced": {"readout": "tree", "tree": "balanced"},
    "tree, huffman": {"readout": "tree", "tree": "huffman"},
    "full": {"readout": "full"},
    "sampled": {"readout": "sampled"},
}
SPACE = {
    "history": (3, 5, 10, 20, 50),
    "width": (32, 64, 128),
    "hidden": (64, 128, 256),
    "readout_width": (32, 64),
    "epochs": (2, 3, 5, 10, 20),
    "batch": (128, 256, 512),
}
# Drawn evenly in the logarithm. A tree learns example by example, the softmaxes from the sum over a micro-batch.
RATES = {"rows_rate": (0.02, 0.5), "trunk_rate": (0.02, 0.5)}
RATE = {"tree": (0.01, 0.2), "full": (0.002, 0.1), "sampled": (0.002, 0.1)}
DRAWS = 12  # settings a readout: the defaults of the time and 11 drawn, which but for `rate` are the same for all
FINALISTS = 3  # of them learn with the other seeds too
SEEDS = (0, 1, 2)
CHOSEN_BY = "valid ndcg@10"

Figures = dict[str, float]


class Trained(NamedTuple):
    """A model's figures on the validation items; test() measures it on the test items."""

    valid: Figures
    test: Callable[[], Figures]


Trial = Callable[[dict, int], Trained]  # of settings and a seed


def run(arguments) -> None:
    """Search on the validation items, then measure the best settings of every readout once on the test items."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / "ml-100k" / "u.data"
    if not path.exists():
        raise SystemExit(f"{path}: not there; HYBRID_DATA names the folder that holds ml-100k/ (not ours to give away)")
    parts = split(histories(load(path)))
    for name, model in READOUTS.items():
        settings = [_defaults(model), *drawn(1 if arguments.quick else DRAWS - 1, RATE[model["readout"]])]
        records = search(name, _trial(path, model, arguments.threads), settings)
        append(arguments.json, [record | {"threads": arguments.threads} for record in records])
    append(arguments.json, baselines(parts))


def search(name: str, trial: Trial, settings: list[dict], finalists=FINALISTS, seeds=SEEDS) -> list[dict]:
    """A record of each of the settings, the best first, and at last of the test with the best."""
    tried = []
    for number, one in enumerate(settings, 1):
        tried.append((one, [trial(one, seeds[0])]))
        print(f"{name} {number}/{len(settings)}  {tried[-1][1][0].valid}  {one}", flush=True)
    tried.sort(key=_merit)
    for one, trained in tried[:finalists]:
        trained += [trial(one, seed) for seed in seeds[1:]]
    tried[:finalists] = sorted(tried[:finalists], key=_merit)
    records = [
        _record("factors.search", name, one, seeds[: len(trained)], [model.valid for model in trained])
        for one, trained in tried
    ]
    best, models = tried[0]
    records.append(_record("factors.test", name, best, seeds, [model.test() for model in models]))
    for record in (*records[:-1][:finalists], records[-1]):
        print(f"{name}  {record['work']}  {_summary(record['quality'])}  {record['params']}", flush=True)
    return records


def _merit(tried: tuple[dict, list[Trained]]) -> float:
    return -statistics.mean(trained.valid[CHOSEN_BY] for trained in tried[1])


def drawn(count: int, rate: tuple[float, float]) -> list[dict]:
    """Settings drawn at random, the same in every call; rate: the limits of that of the readout."""
    rng = np.random.default_rng(0)
    settings = []
    for _ in range(count):
        sizes = {name: int(rng.choice(values)) for name, values in SPACE.items()}
        rates = {
            name: float(f"{math.exp(rng.uniform(*np.log(limits))):.2g}")
            for name, limits in {"rate": rate, **RATES}.items()
        }
        settings.append(sizes | rates)
    return settings


def _defaults(model: dict) -> dict:
    resolved = choose("factors", ratings="any", **model)
    return {name: resolved[name] for name in (*SPACE, "rate", *RATES)}


def _trial(path: Path, model: dict, threads: int) -> Trial:
    """Trains once with some settings and a seed; a run that diverges is worth 0."""

    def trial(settings: dict, seed: int) -> Trained:
        fixed = {"ratings": str(path), "device": "cpu", "threads": threads, "serial": True}
        job = factors.prepare(choose("factors", **fixed | model | settings | {"seed": seed}))
        engine = job.make()
        try:
            for _ in engine.run(job.feed):
                pass
        except FloatingPointError:
            return Trained({CHOSEN_BY: 0.0, "diverged": 1}, dict)
        return Trained(job.validate(engine), lambda: job.final(engine))

    return trial


def baselines(parts: Split) -> list[dict]:
    """Popularity, EASE and first-order Markov counts; their settings are chosen on the validation items too."""
    fits: list[tuple] = [("popularity", {}, ranking.popularity(parts.train), ranking.popularity(parts.train))]
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
        found = {f"test {name}": value for name, value in ranking.figures(test, parts.seen, parts.test).items()}
        records.append(_record("factors.test", who, params, (), [found]))
        print(f"{who}  {_summary(records[-1]['quality'])}  {params}", flush=True)
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
    means = ((name, statistics.mean(values), min(values), max(values)) for name, values in quality.items())
    return ", ".join(f"{name} {mean:.3f} ({low:.3f} to {high:.3f})" for name, mean, low, high in means)


def _record(work: str, who: str, params: dict, seeds: Sequence[int], found: list[Figures]) -> dict:
    names = dict.fromkeys(name for figures in found for name in figures if "@" in name and "popularity" not in name)
    quality = {name: [figures[name] for figures in found if name in figures] for name in names}
    own = {"bench": "tune_factors", "work": work, "who": who, "params": params, "data": "ml-100k", "seeds": seeds}
    return own | {"quality": quality, "threads": 1, "device": "cpu", "commit": commit(), "env": environment()}
