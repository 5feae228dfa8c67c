"""The command `hybrid next`: continues a text or lists its most likely next words."""

import argparse
import json
from typing import Any

from ... import console
from ...feeds.text import EOS
from ...settings import number, positive, whole
from ..arguments import Parser
from . import _use

TOKENS = 20
TEMPERATURE = 0.7


def add(command: Parser) -> None:
    """Adds the options."""
    _use.add_run(command)
    command.add_argument("text", nargs="+", metavar="TEXT", help="the text to continue, a string or several words")
    command.add_argument(
        "--tokens", type=positive, metavar="N", help=f"words to continue by (default: {TOKENS}; none with --k alone)"
    )
    command.add_argument(
        "--temperature",
        type=number,
        default=TEMPERATURE,
        metavar="T",
        help=f"1: by the model's probabilities; lower: the likelier more often; 0: the likeliest (default: {TEMPERATURE})",
    )
    command.add_argument("--seed", type=whole, default=0, help="of what is drawn (default: 0)")
    command.add_argument("--k", type=positive, metavar="K", help="show the K likeliest next words")


def run(given: argparse.Namespace) -> int:
    """Prints the most likely words, the continued text, or both."""
    model, text = _use.opened(given, "continue_text", "continue a text"), " ".join(given.text)
    if unknown := model.unknown(text):
        console.note(f"not in the vocabulary, read as <unk>: {', '.join(unknown)}")
    report: dict[str, Any] = {"text": text}
    if given.k:
        report["next"] = model.next(text, _use.at_most(given.k, len(model.vocabulary), "words"))
    if given.tokens or not given.k:
        tokens = given.tokens or TOKENS
        report["words"] = model.continue_text(text, tokens, temperature=given.temperature, seed=given.seed)
    print(json.dumps(report, indent=1) if given.json else _lines(report))
    return 0


def _lines(report: dict[str, Any]) -> str:
    """Returns a report as text, with the line ends that the model predicts."""
    lines = [_use.table(report["next"])] if "next" in report else []
    if "words" in report:
        continued = " ".join([report["text"], *report["words"]])
        lines += [line.strip() for line in continued.split(EOS)]
    return "\n".join(lines)
