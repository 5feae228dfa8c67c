"""What `python -m bench tune` searches: for every model its data, what is drawn, one training, and the figure that decides."""

import math
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.draws import RATE, TRUNK, Among, Log, Space, sparse
from hybrid.judge import similarity
from hybrid.models import factors, language, words
from hybrid.train.job import Watched
from hybrid.train.options import choose

Figures = dict[str, float]
RATINGS, TEXT, SIMILARITY = "ml-100k/u.data", "wikitext-2/train.txt", "similarity"  # in the folder of HYBRID_DATA


class Trained(NamedTuple):
    """A model's figures on validation data, none where it diverged; test() measures it on test data."""

    valid: Figures
    test: Callable[[], Figures]


class Problem(NamedTuple):
    """A model to be searched for.

    data       what it learns from and is measured on
    readouts   by name: the options that make it
    space      readout -> what is drawn
    judged     the figure of validation data that decides
    trial      (readout, settings, seed) -> a model trained once
    beside     records of others on the same test data
    """

    data: str
    readouts: Mapping[str, dict[str, Any]]
    space: Callable[[str], Space]
    judged: Watched
    trial: Callable[[str, dict[str, Any], int], Trained]
    beside: Callable[[], list[dict[str, Any]]] = list


def of_language(arguments: types.SimpleNamespace) -> Problem:
    """Perplexity on Python's documentation, which every machine has; the number of epochs is fixed."""
    from hybrid.feeds.text import documentation

    parts = documentation().split(valid=0.1, test=0.1, seed=0)
    epochs = 1 if arguments.quick else language.Options().epochs
    train, valid, test = (f"{sum(map(len, part)):,}" for part in parts)

    def trial(readout: str, settings: dict[str, Any], seed: int) -> Trained:
        chosen = choose("language", **_machine(arguments, seed), text="-", readout=readout, epochs=epochs, **settings)
        job = language.Language(chosen, *parts)
        return _trained(job, "valid ", lambda model: {"test perplexity": job.final(model)["test_perplexity"]})

    return Problem(
        f"Python's documentation, {train} tokens to learn from, {valid} to validate, {test} to test; {epochs} epochs",
        {name: {"readout": name} for name in RATE},
        lambda readout: sparse(readout, Log(0.05, 0.5)) | TRUNK,
        Watched("valid perplexity"),
        trial,
    )


SIZES: Space = {
    "history": Among((3, 5, 10, 20, 50)),
    "width": Among((32, 64, 128)),
    "hidden": Among((64, 128, 256)),
    "readout_width": Among((32, 64)),
    "epochs": Among((2, 3, 5, 10, 20)),
    "batch": Among((128, 256, 512)),
}


def of_factors(arguments: types.SimpleNamespace) -> Problem | None:
    """nDCG@10 of MovieLens-100k's validation items; beside the best are popularity, EASE and Markov counts."""
    path = _there(RATINGS)
    if not path:
        return None
    readouts = {"tree, balanced": {"readout": "tree", "tree": "balanced"}}
    readouts |= {"tree, huffman": {"readout": "tree", "tree": "huffman"}}
    readouts |= {name: {"readout": name} for name in ("full", "sampled")}

    def trial(readout: str, settings: dict[str, Any], seed: int) -> Trained:
        settings = settings | ({"epochs": 1} if arguments.quick else {})
        job = factors.prepare(
            choose("factors", **_machine(arguments, seed), ratings=str(path), **readouts[readout] | settings)
        )
        return _trained(job, "", lambda model: _tested(job.final(model)))

    def beside() -> list[dict[str, Any]]:
        from bench import next_items
        from hybrid.feeds.ratings import histories, load, split

        return next_items.baselines(split(histories(load(path))))

    return Problem(
        "ml-100k",
        readouts,
        lambda readout: SIZES | sparse(readouts[readout]["readout"], Log(0.02, 0.5)) | TRUNK,
        Watched("valid ndcg@10", lowest=False),
        trial,
        beside,
    )


def _tested(figures: Mapping[str, Any]) -> Figures:
    """Those that rank."""
    return {name: value for name, value in figures.items() if "@" in name and "popularity" not in name}


def of_words(arguments: types.SimpleNamespace) -> Problem | None:
    """Skip-gram vectors of WikiText-2, judged by the pairs of WordSim-353, tested by SimLex-999 and analogies."""
    text, asked = _there(TEXT), _there(SIMILARITY)
    if not (text and asked):
        return None
    if arguments.quick:
        text = text.with_name("valid.txt")

    def trial(readout: str, settings: dict[str, Any], seed: int) -> Trained:
        chosen = choose("words", **_machine(arguments, seed), text=str(text), readout=readout, **settings)
        job = words.prepare(chosen)
        model = _learned(job)
        if model is None:
            return Trained({}, dict)
        names, rows = job.vocabulary.words, model.embedding.table

        def test() -> Figures:
            simlex = similarity.agreement(asked / "simlex999.txt", names, rows).rho
            right = similarity.analogies(asked / "questions-words.txt", names, rows).total.accuracy
            return {"SimLex-999": simlex, "analogies": right}

        return Trained({"WordSim-353": similarity.agreement(asked / "wordsim353.tsv", names, rows).rho}, test)

    return Problem(
        f"wikitext-2/{text.name}",
        {name: {"readout": name} for name in ("tree", "sampled")},
        lambda readout: sparse("tree", Log(0.01, 0.1)),
        Watched("WordSim-353", lowest=False),
        trial,
    )


PROBLEMS: dict[str, Callable[[Any], Problem | None]] = {
    "language": of_language,
    "factors": of_factors,
    "words": of_words,
}


def _machine(arguments: types.SimpleNamespace, seed: int) -> dict[str, Any]:
    return {"device": "cpu", "threads": arguments.threads, "seed": seed}


def _there(name: str) -> Path | None:
    """A file or folder of the data that are not ours to give away; None, which is said, where it is not there."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    if path.exists():
        return path
    print(f"{path}: not there; HYBRID_DATA names the folder that holds {name}", flush=True)
    return None


def _learned(job: Any) -> Any:
    """The trained model of a job; None where it diverged."""
    model = job.make()
    try:
        for _ in model.run(job.feed):
            pass
    except FloatingPointError:
        return None
    return model if all(np.isfinite(array).all() for array in model.parameters().values()) else None


def _trained(job: Any, prefix: str, test: Callable[[Any], Figures]) -> Trained:
    """What a job's own validation says; prefix: of the names of its figures."""
    model = _learned(job)
    if model is None:
        return Trained({}, dict)
    valid = {f"{prefix}{name}": value for name, value in job.validate(model).items()}
    return Trained({name: value for name, value in valid.items() if math.isfinite(value)}, lambda: test(model))
