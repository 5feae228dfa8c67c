"""`hybrid launch`: a command on several ranks, which MPI starts; in a batch system, which has started them, as this rank."""

import argparse

from ...ranks import launch, process, rank
from ...ranks.watch import PATIENCE
from ...ranks.world import launched
from ...settings import positive
from .. import options, ranks
from ..arguments import Parser


def add(command: Parser) -> None:
    """Add the options to the command's parser."""
    command.add_argument(
        "-n", dest="ranks", type=positive, metavar="N", help="how many ranks, when no batch system says so"
    )
    command.add_argument(
        "--hosts", metavar="FILE", help="names of machines, one a line, that ssh reaches (default: this one)"
    )
    command.add_argument(
        "--patience",
        type=positive,
        default=int(PATIENCE),
        metavar="SECONDS",
        help=f"how long ranks may wait for one that does not come, before all are ended (default: {PATIENCE:g})",
    )
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a command and its options")


def run(given: argparse.Namespace) -> int:
    """Start the ranks, or be one of them."""
    inner = options.read(given.words)  # so that what is wrong is said before there are ranks
    words = ["--quiet"] * given.quiet + ["--debug"] * given.debug + given.words
    if launched():
        process.keep(lambda: rank.run("hybrid.cli", words, given.patience, given.ranks))
    if given.ranks is None:
        raise ValueError("launch: how many ranks? say -n N")
    ranks.check(inner, given.ranks)
    return launch.launch(["hybrid.cli", *words], given.ranks, given.hosts, given.patience)
