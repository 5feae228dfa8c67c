"""Language models that contend: one trunk under every readout."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.contender import Contender, Figures
from bench.draws import TRUNK, Log, Space, sparse
from bench.problems._alike import Alike
from bench.training import contender
from hybrid import trees
from hybrid.feeds.text import Text
from hybrid.models import language
from hybrid.readout import HeadReadout, TreeReadout
from hybrid.sparse import readout_named

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
OWN: Space = {"tail_scale": Log(0.5, 10)}  # of a head


def _head(counts: Any, width: int, vectors: np.ndarray, options: dict[str, Any], batch: int) -> HeadReadout:
    names = ("share", "tails", "tail_scale", "rate", "seed")
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
        space = sparse(readout["readout"], ROWS) | TRUNK | OWN
        on_all, on_part = (functools.partial(job, text, SHAPES.get(name)) if text else None for text in (train, part))
        assert on_all
        found[name] = contender("language", shared | readout, space, on_all, tested, small=on_part)
    return found


def tested(job: language.Language, model: Any) -> Figures:
    """Perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}
