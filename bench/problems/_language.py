"""Language models that contend: one trunk under every readout."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from bench.contender import TRUNK, Contender, Figures, Log, sparse
from bench.training import contender
from hybrid.feeds.text import Text
from hybrid.models import language

READOUTS: dict[str, dict[str, Any]] = {
    "full softmax": {"readout": "full"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    "head clusters by counts": {"readout": "head"},
    "head of softmaxes": {"readout": "head", "tails": "softmax"},
    "head of softmaxes 0.03": {"readout": "head", "tails": "softmax", "share": 0.03},
    "mixture of trees": {"readout": "mixture"},
    "sampled 1024 log-uniform": {"readout": "sampled", "negatives": 1024, "draws": "log-uniform"},
    **{f"sampled {negatives}": {"readout": "sampled", "negatives": negatives} for negatives in (64, 1024, 4096)},
}
ROWS = Log(0.05, 0.5)


def contenders(
    arguments: Any, options: Mapping[str, Any], texts: Sequence[Text], part: Text | None = None
) -> dict[str, Contender]:
    """By name. texts: to learn from, to validate, to test; part: what a search learns from, None: all of it."""
    train, valid, test = texts

    def job(learned: Text, options: dict[str, Any]) -> language.Language:
        return language.Language(options, learned, valid, test)

    shared = {"text": "-", "device": "cpu", "threads": arguments.threads} | dict(options)
    found = {}
    for name, readout in READOUTS.items():
        space = sparse(readout["readout"], ROWS) | TRUNK
        on_all, on_part = (functools.partial(job, text) if text else None for text in (train, part))
        assert on_all
        found[name] = contender("language", shared | readout, space, on_all, tested, small=on_part)
    return found


def tested(job: language.Language, model: Any) -> Figures:
    """Perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}
