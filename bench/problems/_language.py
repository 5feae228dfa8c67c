"""Language models that contend: one trunk under every readout."""

import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.contender import Contender, Figures, Run
from bench.draws import BY_BATCH, TRUNK, Among, By, Log, sparse
from bench.kneser_ney import KneserNey
from bench.peers import peer
from bench.problems._alike import Alike
from bench.training import Peak, contender
from hybrid import trees
from hybrid.feeds.text import Text
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.models import language
from hybrid.readout import HeadReadout, TreeReadout
from hybrid.sparse import readout_named
from hybrid.train.options import choose

READOUTS: dict[str, dict[str, Any]] = {
    "full softmax": {"readout": "full"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    "tree clustered": {"readout": "tree"},
    "tree huffman of clusters": {"readout": "tree"},
    "head clusters by counts": {"readout": "head"},
    "head of softmaxes": {"readout": "head", "tails": "softmax"},
    "head of softmaxes 0.03": {"readout": "head", "tails": "softmax", "share": 0.03},
    "head clusters alike": {"readout": "head"},
    "mixture of trees": {"readout": "mixture"},
    "sampled 1024 log-uniform": {"readout": "sampled", "negatives": 1024, "draws": "log-uniform"},
    **{f"sampled {negatives}": {"readout": "sampled", "negatives": negatives} for negatives in (64, 1024, 4096)},
}
ROWS = Log(0.05, 0.5)
GRAMS = 5


def _head(counts: Any, width: int, vectors: np.ndarray, options: dict[str, Any], batch: int) -> HeadReadout:
    names = ("share", "tails", "rate", "seed")
    given = {name: options[name] for name in names} | readout_named(options)
    return HeadReadout(counts, width, vectors=vectors[: len(counts)], batch=batch, **given)


def _tree(shape: Any, counts: Any, width: int, vectors: np.ndarray, options: dict[str, Any], batch: int) -> TreeReadout:
    given = {name: options[name] for name in ("mode", "rate", "seed")} | readout_named(options)
    return TreeReadout(counts, width, tree=shape(vectors[: len(counts)], counts), batch=batch, **given)


SHAPES = {
    "head clusters alike": _head,
    "tree clustered": functools.partial(_tree, trees.clustered),
    "tree huffman of clusters": functools.partial(_tree, trees.huffman_of_clusters),
}


def contenders(
    arguments: Any, options: Mapping[str, Any], texts: Sequence[Text], part: Text | None = None
) -> dict[str, Contender]:
    """By name. texts: to learn from, to validate, to test; part: what a search learns from, None: all of it."""
    train, valid, test = texts

    def job(learned: Text, shape: Any, options: dict[str, Any]) -> language.Language:
        texts = learned, valid, test
        return Alike(options, *texts, shape=shape) if shape else language.Language(options, *texts)

    shared = {"text": "-", "device": "cpu", "threads": arguments.threads} | dict(options)
    found = {}
    for name, readout in READOUTS.items():
        space = sparse(readout["readout"], ROWS) | TRUNK
        on_all, on_part = (functools.partial(job, text, SHAPES.get(name)) if text else None for text in (train, part))
        assert on_all
        found[name] = contender("language", shared | readout, space, on_all, tested, small=on_part)
    chosen = choose("language", **shared, readout="full")
    if peer("torch"):
        found["torch adaptive softmax"] = _adaptive(chosen, texts, part)
    found["Kneser-Ney 5-gram"] = Contender(lambda settings, seed, epochs: _counted(chosen, texts), {}, {}, once=True)
    return found


def _adaptive(options: dict[str, Any], texts: Sequence[Text], part: Text | None) -> Contender:
    """PyTorch's adaptive softmax under the same trunk, with optimisers that PyTorch has for sparse rows."""
    from bench import torch_language

    def train(learned: Text, settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
        asked = {**options, **settings, "seed": seed, "epochs": max(math.ceil(epochs), 1)}
        job = language.Language(asked, learned, texts[1])
        valid, test = (language.measured_feed(asked, text, job.vocabulary) for text in texts[1:])
        return torch_language.train(asked, job.feed, valid, test, epochs)

    kinds = {"rows_optimiser": Among(("sgd", "adagrad")), "readout_optimiser": Among(("sgd", "adagrad", "adam"))}
    rates = {"sgd": BY_BATCH, "adagrad": Log(0.005, 0.3), "adam": Log(3e-4, 0.01)}
    space = sparse("full", ROWS) | TRUNK | kinds | {"rate": By("readout_optimiser", rates)}
    del space["trunk_decay"]
    first = {name: options[name] for name in space}
    small = functools.partial(train, part) if part else None
    return Contender(functools.partial(train, texts[0]), space, first, small=small)


def _counted(options: dict[str, Any], texts: Sequence[Text]) -> Run:
    """Counts of n-grams, smoothed."""
    options = options | {"context": GRAMS - 1}
    vocabulary = Vocabulary.build(texts[0], min_count=options["min_count"])
    learned, valid, test = (_windows(options, text, vocabulary) for text in texts)
    peak, start = Peak(), time.perf_counter()
    model = KneserNey(learned, len(vocabulary))
    seconds = time.perf_counter() - start

    def perplexity(windows: np.ndarray) -> Figures:
        return {"perplexity": float(np.exp(-np.log(model.probabilities(windows)).mean()))}

    measures = functools.partial(perplexity, valid), functools.partial(perplexity, test)
    return Run(*measures, epochs=1, seconds=seconds, examples=len(learned), parameters=model.size, memory=peak.bytes())


def _windows(options: dict[str, Any], text: Text, vocabulary: Vocabulary) -> np.ndarray:
    """(T, GRAMS): of every token what comes before it, and itself."""
    feed = language.measured_feed(options, text, vocabulary)
    batches: list[Any] = [feed[tick] for tick in range(len(feed))]
    return np.concatenate([np.column_stack([np.reshape(one.ids, (-1, GRAMS - 1)), one.target]) for one in batches])


def tested(job: language.Language, model: Any) -> Figures:
    """Perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}
