"""The command `hybrid neighbours`: words or items with the nearest vectors."""

import argparse

from ..arguments import Parser
from . import _use


def add(command: Parser) -> None:
    """Adds the options."""
    _use.add_run(command, "RUN|FILE", "the folder of a trained run, or a file of vectors, such as hybrid export writes")
    command.add_argument("words", nargs="+", metavar="WORD", help="words or items to ask about")
    _use.add_k(command, "neighbours of each")


def run(given: argparse.Namespace) -> int:
    """Prints the nearest of each word."""
    vectors = _use.vectors(given)
    _use.show(vectors.neighbours(given.words, _use.at_most(given.k, len(vectors), "names")), given.json)
    return 0
