"""`hybrid similar`: items like an item, words like a word, as a trained run sees them."""

import argparse

from ..arguments import Parser
from . import _use


def add(command: Parser) -> None:
    """Offer the options."""
    _use.add_run(command)
    command.add_argument("names", nargs="+", metavar="NAME", help="items or words to ask about")
    _use.add_k(command, "answers for each")


def run(given: argparse.Namespace) -> int:
    """Print what is like each name."""
    model = _use.opened(given, "similar", "say what is similar")
    _use.show(model.similar(given.names, _use.at_most(given.k, len(model.vectors), "names")), given.json)
    return 0
