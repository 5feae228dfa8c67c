"""`hybrid neighbours`: the words or items whose vectors are nearest."""

import argparse

from ..arguments import Parser
from . import _use


def add(command: Parser) -> None:
    """Offer the options."""
    _use.add_run(command, "RUN|FILE", "the folder of a trained run, or a file of vectors, such as hybrid export writes")
    command.add_argument("words", nargs="+", metavar="WORD", help="words or items to ask about")
    _use.add_k(command, "neighbours of each")


def run(given: argparse.Namespace) -> int:
    """Print the nearest of each word."""
    vectors = _use.vectors(given)
    _use.show(vectors.neighbours(given.words, _use.at_most(given.k, len(vectors), "names")), given.json)
    return 0
