"""The command `hybrid analogy`: a is to b as c is to what?"""

import argparse
import json

from ..arguments import Parser
from . import _use


def add(command: Parser) -> None:
    """Adds the options."""
    _use.add_run(command, "RUN|FILE", "the folder of a trained run, or a file of vectors, such as hybrid export writes")
    for name in "abc":
        command.add_argument(name, metavar=name.upper(), help="a word or item")
    _use.add_k(command, "answers")


def run(given: argparse.Namespace) -> int:
    """Prints the words nearest to b - a + c, of unit vectors."""
    vectors = _use.vectors(given)
    found = vectors.most_similar([given.b, given.c], [given.a], topn=_use.at_most(given.k, len(vectors), "words"))
    if given.json:
        asked = {name: getattr(given, name) for name in "abc"}
        print(json.dumps(asked | {"found": [{"name": name, "score": score} for name, score in found]}, indent=1))
    else:
        print(f"{given.a} is to {given.b} as {given.c} is to")
        print(_use.table(found))
    return 0
