"""The command `hybrid export`: writes the vectors of a trained run for other programs."""

import argparse

from ...storage import files
from ..arguments import CHECKPOINT, Parser


def add(command: Parser) -> None:
    """Adds the options to the command's parser."""
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("file", metavar="FILE", help="the file to write")
    command.add_argument(
        "--format",
        choices=("text", "binary", "npy", "npz"),
        help="text and binary are word2vec's (default: by the end of FILE: .bin, .npy, .npz, else text)",
    )
    command.add_argument(
        "--side",
        choices=("inputs", "outputs", "users"),
        default="inputs",
        help="inputs: the rows that are read, for what is similar; outputs: of each item or word what its inner product with"
        " a hidden vector ranks it by; users: of a run of factors, the hidden vector of each user (default: inputs)",
    )
    command.add_overwrite()
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)


def run(given: argparse.Namespace) -> int:
    """Writes the file."""
    from ...train import runs

    files.check(given.file, given.overwrite)
    print(runs.export(given.run, given.file, given.format, given.checkpoint, given.side))
    return 0
