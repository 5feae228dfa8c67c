"""Language models that contend: one trunk under every readout."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.contender import Contender, Figures
from bench.draws import TRUNK, Log, sparse
from bench.training import contender
from hybrid.feeds.text import Text
from hybrid.models import language

READOUTS: dict[str, dict[str, Any]] = {
    "full softmax": {"readout": "full"},
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    **{f"sampled {negatives}": {"readout": "sampled", "negatives": negatives} for negatives in (64, 1024, 4096)},
}
ROWS = Log(0.05, 0.5)


def contenders(
    arguments: Any, options: Mapping[str, Any], texts: Sequence[Text], part: Text | None = None
) -> dict[str, Contender]:
    """By name. texts: to learn from, to validate, to test; part: what a search learns from, None: all of it."""
    train, valid, test = texts

    def job(options: dict[str, Any], learned: Text = train) -> language.Language:
        return language.Language(options, learned, valid, test)

    def on_part(options: dict[str, Any]) -> language.Language:
        assert part
        return job(options, part)

    shared = {"text": "-", "device": "cpu", "threads": arguments.threads} | dict(options)
    return {
        name: contender(
            "language",
            shared | readout,
            sparse(readout["readout"], ROWS) | TRUNK,
            job,
            tested,
            small=on_part if part else None,
        )
        for name, readout in READOUTS.items()
    }


def tested(job: language.Language, model: Any) -> Figures:
    """Perplexity of the test text."""
    return {"perplexity": job.final(model)["test_perplexity"]}
