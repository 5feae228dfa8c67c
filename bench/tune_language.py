"""Learning rates of the three readouts of `hybrid demo`, searched alike: the same tries for each, judged on validation."""

import math

import numpy as np

from bench.measure import append, commit, environment
from hybrid.feeds.text import Parts, documentation
from hybrid.models import language
from hybrid.train.options import choose

READOUTS = ("tree", "sampled", "full")
TRIES, EPOCHS = 12, 4  # of each readout
SEEDS, FINALISTS = (0, 1, 2), 3  # one seed says little of rates that are nearly too high
GRID = {
    "rate": (0.01, 0.02, 0.04, 0.08),
    "rows_rate": (0.05, 0.1, 0.2, 0.4),
    "trunk_rate": (0.05, 0.1, 0.2, 0.4),
}
FIGURES = ("valid perplexity", "test perplexity")


def run(arguments) -> None:
    """Train each readout at TRIES points of the grid; the best FINALISTS of each with all seeds, and the mean decides."""
    parts = documentation().split(valid=0.1, test=0.1, seed=0)
    tries, epochs, seeds = (1, 1, SEEDS[:1]) if arguments.quick else (TRIES, EPOCHS, SEEDS)
    for readout in READOUTS:
        searched = []
        for rates in _points(tries):
            found = _learn(readout, rates, epochs, 0, arguments.threads, parts)
            searched.append((found["valid perplexity"], rates, found))
            append(arguments.json, [_record("language.search", readout, rates, epochs, [0], [found], parts, arguments)])
            print(f"{readout:<8} {rates} {found['valid perplexity']:.2f}", flush=True)
        for _, rates, found in sorted(searched, key=lambda one: one[0])[:FINALISTS]:
            every = [found, *(_learn(readout, rates, epochs, seed, arguments.threads, parts) for seed in seeds[1:])]
            record = _record("language.tuned", readout, rates, epochs, list(seeds), every, parts, arguments)
            append(arguments.json, [record])
            print(f"{readout:<8} {rates} {record['quality']}", flush=True)


def _points(tries: int) -> list[dict[str, float]]:
    """Points of the grid, the same for every readout: each value of each rate equally often, in an order that is drawn."""
    rng = np.random.default_rng(0)
    drawn = {name: rng.permutation(np.resize(values, tries)).tolist() for name, values in GRID.items()}
    return [dict(zip(GRID, point, strict=True)) for point in zip(*drawn.values(), strict=True)]


def _learn(readout: str, rates: dict, epochs: int, seed: int, threads: int, parts: Parts) -> dict[str, float]:
    """Figures of one training; a loss that is not finite counts as an infinite perplexity."""
    machine = {"threads": threads, "device": "cpu"}
    chosen = choose("language", text="-", readout=readout, epochs=epochs, seed=seed, **machine, **rates)
    job = language.Language(chosen, *parts)
    engine = job.make()
    try:
        for _ in engine.run(job.feed):
            pass
    except FloatingPointError:
        return dict.fromkeys(FIGURES, math.inf)
    return dict(zip(FIGURES, (job.validate(engine)["perplexity"], job.final(engine)["test_perplexity"]), strict=True))


def _record(work, readout, rates, epochs, seeds, found: list[dict], parts: Parts, arguments) -> dict:
    train, valid, test = (f"{sum(map(len, part)):,}" for part in parts)
    return {
        "bench": "tune_language",
        "work": work,
        "who": readout,
        "params": rates | {"epochs": epochs},
        "seeds": seeds,
        "quality": {name: [figures[name] for figures in found] for name in FIGURES},
        "data": f"Python's documentation, {train} tokens to learn from, {valid} to validate, {test} to test",
        "threads": arguments.threads,
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }
