"""Language model contenders: one trunk under every readout."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.contender import TRUNK, Contender, Figures, Log, Problem, contender, sparse
from hybrid.feeds.text import Text, documentation
from hybrid.models import language
from hybrid.train.job import Watched

READOUTS: dict[str, dict[str, Any]] = {
    "full softmax": {"readout": "full"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    "head of softmaxes": {"readout": "head"},
    "head of softmaxes 0.03": {"readout": "head", "share": 0.03},
    "mixture of trees": {"readout": "mixture"},
    "sampled 1024 log-uniform": {"readout": "sampled", "negatives": 1024, "draws": "log-uniform"},
    **{f"sampled {negatives}": {"readout": "sampled", "negatives": negatives} for negatives in (64, 1024, 4096)},
}
ROWS = Log(0.05, 0.5)


def contenders(arguments: Any, options: Mapping[str, Any], texts: Sequence[Text]) -> dict[str, Contender]:
    """Returns the contenders by name. texts: for training, validation and test."""

    def job(options: dict[str, Any]) -> language.Language:
        return language.Language(options, *texts)

    shared = {"text": "-", "device": "cpu", "threads": arguments.threads} | dict(options)
    found = {}
    for name, readout in READOUTS.items():
        space = sparse(readout["readout"], ROWS) | TRUNK
        found[name] = contender("language", shared | readout, space, job, tested)
    return found


def tested(job: language.Language, model: Any) -> Figures:
    """Returns the perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}


# The next word of Python's documentation, available on every machine: lower case, words that occur twice.


def make_documentation(arguments: Any) -> Problem:
    """Builds the problem from its distinct paragraphs; a tenth validates, a tenth tests."""
    parts = documentation().split(valid=0.1, test=0.1, seed=0)
    train, valid, test = (f"{sum(map(len, part)):,}" for part in parts)
    return Problem(
        f"Python's documentation, {train} tokens to learn from, {valid} to validate, {test} to test",
        Watched("perplexity"),
        contenders(arguments, {}, parts),
        epochs=(2, 4, 8),
    )
