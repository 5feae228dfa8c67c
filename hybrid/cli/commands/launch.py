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
        "-n",
        dest="ranks",
        type=_ranks,
        metavar="N|MIN:MAX",
        help="how many ranks, when no batch system says so; MIN:MAX: as many as MAX, of which some may be killed",
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


def _ranks(text: str) -> tuple[int | None, int]:
    """MIN:MAX, or N for None and N."""
    least, colon, most = text.rpartition(":")
    low, high = positive(least) if colon else None, positive(most)
    if low is not None and low > high:
        raise argparse.ArgumentTypeError(f"{text}: found more ranks at least than at most, expected MIN:MAX")
    return low, high


def run(given: argparse.Namespace) -> int:
    """Start the ranks, or be one of them."""
    inner = options.read(given.words)  # so that what is wrong is said before there are ranks
    words = ["--quiet"] * given.quiet + ["--debug"] * given.debug + given.words
    least, most = given.ranks or (None, None)
    if launched():
        if least is not None:
            raise ValueError(f"-n {least}:{most}: a batch system has started the ranks, and ends them; say -n {most}")
        process.keep(lambda: rank.run("hybrid.cli", words, given.patience, most))
    if most is None:
        raise ValueError("launch: how many ranks? say -n N")
    ranks.check(inner, most, least)
    code = launch.launch(["hybrid.cli", *words], most, given.hosts, given.patience, least)
    ranks.say_what_stands(inner, code)
    return code
