"""An LSTM of PyTorch on WikiText-2 as published, under every readout: perplexity after 30 minutes."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench import torch_lstm
from bench.contender import Contender, Problem, Run
from bench.draws import Among, Log, Space
from bench.problems._alike import vectors_of
from bench.problems.language import texts
from hybrid import trees
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.readout import FullReadout, HeadReadout, SampledReadout, TreeReadout
from hybrid.train.job import Watched

SPACE: Space = {
    "lr": Log(5e-4, 5e-3),
    "rows_rate": Log(5e-4, 1e-2),
    "rate": Log(0.01, 0.3),
    "dropout": Among((0.1, 0.2, 0.3, 0.4, 0.5)),
}
# What minutes show is no guide to how much dropout half an hour needs: 16 passes at 0.3 left 126, ten at 0.2 130.
FIRST = {"lr": 2e-3, "rows_rate": 2e-3, "rate": 0.05, "dropout": 0.3}
Made = Callable[[torch_lstm.Texts, Mapping[str, Any], dict[str, Any], int, int], Any]


def _plain(kind: Any, **own: Any) -> Made:
    def made(
        data: torch_lstm.Texts, settings: Mapping[str, Any], given: dict[str, Any], seed: int, threads: int
    ) -> Any:
        return kind(data.counts, torch_lstm.WIDTH, **given, **own)

    return made


def _head(**own: Any) -> Made:
    def made(
        data: torch_lstm.Texts, settings: Mapping[str, Any], given: dict[str, Any], seed: int, threads: int
    ) -> Any:
        found, scale = vectors_of(_corpus(data), seed, threads)[0], settings["tail_scale"]
        return HeadReadout(data.counts, torch_lstm.WIDTH, vectors=found, tail_scale=scale, **given, **own)

    return made


def _tree(data: torch_lstm.Texts, settings: Mapping[str, Any], given: dict[str, Any], seed: int, threads: int) -> Any:
    found = vectors_of(_corpus(data), seed, threads)[0]
    return TreeReadout(data.counts, torch_lstm.WIDTH, tree=trees.clustered(found, data.counts), **given)


READOUTS: dict[str, Made] = {
    "full softmax": _plain(FullReadout),
    "tree huffman": _plain(TreeReadout),
    "tree clustered": _tree,
    "head clusters alike": _head(),
    "head of softmaxes": _head(tails="softmax"),
    "head of softmaxes 0.03": _head(tails="softmax", share=0.03),
    "sampled 1024": _plain(SampledReadout, negatives=1024),
}


def make(arguments: Any) -> Problem | None:
    """One length, one seed: a training takes half an hour."""
    found = texts()
    if found is None:
        return None
    vocabulary = Vocabulary.build(found[0], min_count=1)
    train, valid, test = (Corpus(text, vocabulary).ids for text in found)
    data = torch_lstm.Texts(train, valid, test, np.asarray(vocabulary.counts), int(vocabulary.encode(["<eos>"])[0]))
    if arguments.quick:
        data = data._replace(train=data.train[:50_000], valid=data.valid[:5_000], test=data.test[:5_000])

    def contender(name: str, made: Made) -> Contender:
        own: Space = {"tail_scale": Log(0.5, 10)} if name.startswith("head") else {}
        train = functools.partial(_train, data, made, arguments.threads)
        return Contender(train, SPACE | own, FIRST | dict.fromkeys(own, 1.0))

    return Problem(
        "WikiText-2 as published",
        Watched("perplexity"),
        {name: contender(name, made) for name, made in READOUTS.items()},
        epochs=(),
        seconds=(1800,),
        seeds=(0,),
    )


def _train(
    data: torch_lstm.Texts, made: Made, threads: int, settings: Mapping[str, Any], seed: int, epochs: float
) -> Run:
    batch = torch_lstm.STREAMS * torch_lstm.STEPS
    given = {"batch": batch, "rate": settings["rate"], "optimiser": "adagrad", "seed": seed}
    return torch_lstm.train(data, lambda: made(data, settings, given, seed, threads), settings, seed, epochs, threads)


def _corpus(data: torch_lstm.Texts) -> Corpus:
    words = [str(number) for number in range(len(data.counts))]
    return Corpus.from_ids(data.train, Vocabulary(words, data.counts))
